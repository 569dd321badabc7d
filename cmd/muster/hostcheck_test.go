package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/cli"
	"muster/cli/hosts"
	"muster/testkit/sshtest"
)

// Real hosts: a healthy one, one that shows another key, one that refuses the login, an address
// without a host, one without flock.
func TestCheckLiveOfRealHosts(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	for _, tool := range strings.Fields(hosts.RecordTools + " sh bash date df cut tr dirname stat") {
		if path, err := exec.LookPath(tool); err == nil && tool != "flock" {
			if err := os.Symlink(path, filepath.Join(tools, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole := sshtest.StartSSHD(t, sshtest.Options{})
	bare := sshtest.StartSSHD(t, sshtest.Options{Address: "127.0.0.3",
		Config: []string{"SetEnv PATH=" + tools + " HOME=" + t.TempDir()}})
	wrongKey, otherKey := sshtest.NewKey(t)
	text := "hosts:\n"
	for _, h := range []struct {
		name, key, hostKey, fence string
		port                      int
		of                        sshtest.SSHD
	}{
		{"well", whole.Key, whole.HostKey, "required", whole.Port, whole},
		{"bare", bare.Key, bare.HostKey, "required", bare.Port, bare},
		{"bare2", bare.Key, bare.HostKey, "auto", bare.Port, bare},
		{"stranger", whole.Key, otherKey, "auto", whole.Port, whole},
		{"shut", wrongKey, whole.HostKey, "auto", whole.Port, whole},
		{"away", whole.Key, whole.HostKey, "auto", 1, whole},
	} {
		text += fmt.Sprintf("  - {name: %s, address: %s, port: %d, user: %s, key: %s, host_key: %q, fence: %s}\n",
			h.name, h.of.Address, h.port, h.of.User, h.key, h.hostKey, h.fence)
	}
	h := newHouse(t, text)
	code, out, words := h.plainly("", "hosts", "check", "all", "--live", "-o", "json")
	var list []hosts.Checked
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != cli.ExitNotAll {
		t.Fatalf("exit %d, %v: %s %s", code, err, out, words)
	}
	got := map[string]string{}
	for _, c := range list {
		for _, f := range c.Findings {
			got[c.Host] += f.What + map[bool]string{true: "!"}[f.Wrong] + " "
		}
		if c.Well == strings.Contains(got[c.Host], "!") {
			t.Errorf("%s: well %v with %s", c.Host, c.Well, got[c.Host])
		}
	}
	want := map[string]string{"bare": "record! ", "bare2": "record ", "stranger": "host_key! ", "shut": "auth! ",
		"away": "unreachable! "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s\n%s", diff, out)
	}
	code, out, words = h.plainly("", "hosts", "check", "well,bare2", "--live")
	if code != cli.ExitOK || !strings.Contains(out, "bare2: record: unfenced") ||
		!strings.HasSuffix(out, "2 of 2 hosts well\n") {
		t.Errorf("two that are well: exit %d, %s %s", code, out, words)
	}
}

// mount mounts something for a test; only root can.
func mount(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %s", out)
	}
}

// recordsOnADisk puts the folder of records of an old host on a disk of its own.
func recordsOnADisk(t *testing.T, dir string) {
	t.Helper()
	mount(t, "-t", "tmpfs", "-o", "size=100m,mode=700", "none", dir)
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	if err := os.WriteFile(filepath.Join(dir, "born"), []byte("000000001 000000001 -\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A host whose folder of records is on a read-only disk is not healthy: every step fails there. And
// a key with a passphrase is read as a node reads it, with the given configuration.
func TestCheckLiveOfAReadOnlyFolderWithALockedKey(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := filepath.Join(home, ".local/state/muster-record")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	recordsOnADisk(t, dir)
	sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"SetEnv HOME=" + home}})
	if out, err := exec.Command("ssh-keygen", "-p", "-N", "open sesame", "-f", sshd.Key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h := newHouse(t, fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
		sshd.Address, sshd.Port, sshd.User, sshd.Key, sshd.HostKey))
	h.write("phrase", "open sesame\n")
	h.write("node.yaml", "ssh: {passphrase_file: "+h.file("phrase")+"}\n")
	code, out, words := h.plainly("", "hosts", "check", "fw1", "--live")
	if code != cli.ExitNotAll || !strings.Contains(out, "--config") {
		t.Errorf("without the passphrase: exit %d: %s %s", code, out, words)
	}
	named := []string{"--config", h.file("node.yaml")}
	code, out, words = h.plainly("", append([]string{"hosts", "check", "fw1", "--live"}, named...)...)
	if code != cli.ExitOK {
		t.Errorf("a folder that can be written: exit %d: %s %s", code, out, words)
	}
	mount(t, "-o", "remount,ro", dir)
	code, out, words = h.plainly("", append([]string{"hosts", "check", "fw1", "--live"}, named...)...)
	if code != cli.ExitNotAll || !strings.Contains(out, dir+", cannot be written") {
		t.Errorf("a read-only folder: exit %d: %s %s", code, out, words)
	}
	code, out, words = h.plainly("", append([]string{"ssh", "fw1", "echo in"}, named...)...)
	if code != 0 || out != "in\n" {
		t.Errorf("ssh: exit %d: %s %s", code, out, words)
	}
	named[1] = h.file("nowhere.yaml")
	if code, _, words = h.plainly("", append([]string{"ssh", "fw1", "echo in"}, named...)...); code == 0 {
		t.Errorf("a configuration that is not there: exit %d: %s", code, words)
	}
}

// The check looks at the folder of records in the nodes' configuration: whether another folder is
// writable says nothing.
func TestCheckLiveLooksAtTheConfiguredFolderOfRecords(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "records")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	recordsOnADisk(t, dir)
	mount(t, "-o", "remount,ro", dir)
	sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"SetEnv HOME=" + t.TempDir()}})
	h := newHouse(t, fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
		sshd.Address, sshd.Port, sshd.User, sshd.Key, sshd.HostKey))
	h.write("node.yaml", fmt.Sprintf("ssh: {record_dir: %q}\n", dir))
	code, out, words := h.plainly("", "hosts", "check", "fw1", "--live", "--config", h.file("node.yaml"))
	if code != cli.ExitNotAll || !strings.Contains(out, "its folder of records, "+dir+", cannot be written") {
		t.Errorf("exit %d: %s %s", code, out, words)
	}
	h.write("node.yaml", fmt.Sprintf("ssh: {record_dir: %q}\n", t.TempDir()))
	code, out, words = h.plainly("", "hosts", "check", "fw1", "--live", "--config", h.file("node.yaml"))
	if code != cli.ExitOK {
		t.Errorf("one that can be written: exit %d: %s %s", code, out, words)
	}
}
