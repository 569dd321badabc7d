package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/testkit/vmtest"
)

// packed makes packages of two versions of this test binary, which is muster.
func packed(t *testing.T) (old, next string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	patched := filepath.Join(dir, "muster")
	text = []byte(strings.ReplaceAll(string(text), firstVersion, otherVersion))
	if err := os.WriteFile(patched, text, 0o755); err != nil {
		t.Fatal(err)
	}
	for version, binary := range map[string]string{"1.0.0": self, "1.1.0": patched} {
		c := exec.CommandContext(t.Context(), "../../tools/packages.sh", "-v", version, "-b", binary, "-o",
			filepath.Join(dir, version), "amd64")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("packages.sh: %v\n%s", err, out)
		}
	}
	return filepath.Join(dir, "1.0.0", "muster_1.0.0-1_amd64.deb"), filepath.Join(dir, "1.1.0", "muster_1.1.0-1_amd64.deb")
}

// shell begins the text of each part. A "!" does not end a shell with -e, so no does.
const shell = `set -ex
export DEBIAN_FRONTEND=noninteractive
no() { if sh -c "$1"; then echo "want no success of: $1"; exit 1; fi; }
`

// Somebody who has read docs/INSTALL.md alone installs muster, gives it work, upgrades it under
// load, goes back, and takes it away. The parts build on each other.
func TestOnARealSystemdPackages(t *testing.T) {
	if !*onVM {
		return // make vm requests it
	}
	old, next := packed(t)
	vm := vmtest.New(t, "../..")
	vm.Copy(old, "/root/old.deb")
	vm.Copy(next, "/root/next.deb")
	vm.Copy(vm.Key, "/root/host_key")
	for _, part := range []struct{ name, do string }{
		{"an installation starts nothing", `
apt-get install -qq -y --no-install-recommends /root/old.deb
no "systemctl is-active muster-server.socket muster-server muster-master | grep -x active"
no "systemctl is-enabled muster-server.socket muster-server muster-master | grep -x enabled"
test "$(stat -c %U:%G:%a /etc/muster/muster.yaml)" = root:muster:640
muster version | grep first-binary`},
		{"the first job, by the page", `
systemctl start redis-server
muster init > /root/init.out 2>&1
cat /root/init.out
sed -n 's/^  redis-cli/redis-cli/p' /root/init.out | grep -v REWRITE > /root/do # started without a file of its own
test "$(wc -l < /root/do)" -ge 1
sh -e /root/do
muster init 2>&1 | grep 'is fit for a queue'
install -o muster -g muster -m 400 /root/host_key /etc/muster/id_ed25519
cat > /etc/muster/fleet.yaml <<'EOF'
defaults: {user: root, key: /etc/muster/id_ed25519, known_hosts: /etc/muster/known_hosts}
hosts:
  - {name: fw001, address: 127.0.0.1}
EOF
sed -i 's|^inventory: .*|inventory: [/etc/muster/fleet.yaml]|' /etc/muster/muster.yaml
muster hosts enroll all --inventory /etc/muster/fleet.yaml --write /etc/muster/known_hosts --yes
systemctl enable --now muster-server muster-master
systemctl is-active muster-server.socket
muster health
muster exec all -- uname -a
muster jobs last`},
		{"an upgrade under load", `
muster exec all --detach -- 'touch /tmp/began; until [ -e /tmp/end ]; do sleep 1; done; echo outlived'
until [ -e /tmp/began ]; do sleep 1; done
was=$(systemctl show -P MainPID muster-master)
# Callers beside it, until all is over: none may be refused.
(while [ ! -e /tmp/quiet ]; do muster nodes > /dev/null 2>> /tmp/refused || echo refused >> /tmp/refused; done) &
apt-get install -qq -y --no-install-recommends /root/next.deb
until muster nodes -o json | grep -q other-binary; do sleep 1; done
test "$was" = "$(systemctl show -P MainPID muster-master)"
muster health
touch /tmp/end
muster wait last
muster logs last | grep outlived
touch /tmp/quiet
wait
! test -s /tmp/refused || { cat /tmp/refused; exit 1; }
grep -q fleet.yaml /etc/muster/muster.yaml`},
		{"stopped stays stopped, on the way back", `
systemctl stop muster-master
apt-get install -qq -y --no-install-recommends --allow-downgrades /root/old.deb
test "$(systemctl is-active muster-master)" = inactive
systemctl is-active muster-server
test "$(readlink /proc/$(systemctl show -P MainPID muster-server)/exe)" = /usr/bin/muster
systemctl start muster-master
muster exec all -- true`},
		{"after a removal nothing runs, and the keys are there", `
apt-get remove -qq -y muster
no "pgrep -x muster"
test -e /etc/muster/server.key && test -e /etc/muster/muster.yaml && test -d /var/lib/muster-server
no "systemctl cat muster-server"`},
		{"a purge leaves nothing", `
apt-get purge -qq -y muster
no "test -e /etc/muster || test -e /var/lib/muster-server || test -e /usr/bin/muster"
no "systemctl --failed --no-legend --plain | grep muster"`},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			out, code := vm.In(t).Try(shell + part.do)
			if code != 0 {
				why, _ := vm.In(t).Try("journalctl -b -q -n 60 -u 'muster-*' --no-pager")
				t.Fatalf("exit %d:\n%s\nthe journal:\n%s", code, out, why)
			}
			if testing.Verbose() {
				t.Log(out)
			}
		})
		if !ok {
			return
		}
	}
}
