package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

func TestWhatAHostAnswersIsJudged(t *testing.T) {
	t.Parallel()
	sent := time.Unix(1_800_000_000, 0)
	fine := "now 1800000000\nlack\nplace /var/lib/muster\nfree 1000000\nend\n"
	for _, test := range []struct {
		name, said string
		fence      fleet.Fence
		code       int
		err        error
		want       []string // what, then ! if it is wrong, then a part of the text
	}{
		{"well", fine, fleet.FenceRequired, 0, nil, nil},
		{"sudo works", fine + "", fleet.FenceAuto, 0, nil, nil},
		{"noise", "~Welcome!\r\n" + fine, fleet.FenceAuto, 0, nil, []string{"shell its login shell says"}},
		{"clock ahead", strings.Replace(fine, "1800000000", "1800003602", 1), fleet.FenceAuto, 0, nil,
			[]string{"clock! its clock is 1h00m ahead"}},
		{"clock behind", strings.Replace(fine, "1800000000", "1799999990", 1), fleet.FenceAuto, 0, nil,
			[]string{"clock! its clock is 10s behind"}},
		{"clock a little off", strings.Replace(fine, "1800000000", "1799999996", 1), fleet.FenceAuto, 0, nil, nil},
		{"no clock", strings.Replace(fine, "1800000000", "%s", 1), fleet.FenceAuto, 0, nil,
			[]string{"clock it does not tell"}},
		{"full", strings.Replace(fine, "free 1000000", "free 12000", 1), fleet.FenceAuto, 0, nil,
			[]string{"disk! 11 MB free in /var/lib/muster"}},
		{"no flock", strings.Replace(fine, "lack", "lack flock setsid", 1), fleet.FenceAuto, 0, nil,
			[]string{"record unfenced, it cannot keep a record of attempts: it lacks flock setsid"}},
		{"no flock, which is required", strings.Replace(fine, "lack", "lack flock", 1), fleet.FenceRequired, 0, nil,
			[]string{"record! unfenced"}},
		{"no flock, which nobody wants", strings.Replace(fine, "lack", "lack flock", 1), fleet.FenceNone, 0, nil, nil},
		{"no place", strings.Replace(fine, "/var/lib/muster", "", 1), fleet.FenceRequired, 0, nil,
			[]string{"record! unfenced, it cannot keep a record of attempts: it has no writable place"}},
		{"sudo asks", "sudo no sudo: a password is required\n" + fine, fleet.FenceAuto, 0, nil,
			[]string{"sudo! sudo without a password is refused, it said: \"sudo: a password is required\""}},
		{"no shell", "~% unknown command", fleet.FenceAuto, 1, nil, []string{"shell! it has no POSIX shell for us"}},
		{"no shell on an appliance", "~?", fleet.FenceNone, 1, nil, []string{"shell it has no POSIX shell"}},
		{"cut", "now 1800000000\n", fleet.FenceAuto, -1, &remote.Error{Kind: remote.KindLost, Err: errors.New("cut")},
			[]string{"lost! it let us in, but: cut"}},
		{"silent", "", fleet.FenceNone, -1, &remote.Error{Kind: remote.KindCancelled, Err: errors.New("late")},
			[]string{"shell! it let us in, and answered nothing in time"}},
	} {
		p := hostProbe{nonce: "x", dir: "/var/lib/muster", sent: sent, back: sent.Add(time.Second)}
		said := ""
		for line := range strings.Lines(test.said) {
			if noise, ok := strings.CutPrefix(line, "~"); ok {
				said += noise
			} else {
				said += "x " + line
			}
		}
		got := p.judge(fleet.Host{Fence: test.fence}, said, test.code, test.err)
		if len(got) != len(test.want) {
			t.Errorf("%s: %+v, want %q", test.name, got, test.want)
			continue
		}
		for i, f := range got {
			text := f.What + map[bool]string{true: "!"}[f.Wrong] + " " + f.Text
			if !strings.HasPrefix(text, test.want[i]) || f.Wrong && f.Do == "" {
				t.Errorf("%s: %q, do %q; want %q", test.name, text, f.Do, test.want[i])
			}
		}
	}
}

func TestFindingsAreTold(t *testing.T) {
	t.Parallel()
	slow := finding{What: "clock", Text: "late", Do: "mend it", Wrong: true}
	bare := finding{What: "record", Text: "unfenced"}
	got := checkedText([]checked{
		{Host: "fw1", Well: true}, {Host: "fw2", Findings: []finding{bare, slow}},
		{Host: "fw3", Findings: []finding{bare}, Well: true}, {Host: "fw4", Findings: []finding{bare}, Well: true},
	}, false)
	want := "1 host: fw2: clock: late\n  mend it\n3 hosts: fw[2-4]: record: unfenced\n3 of 4 hosts well\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Real hosts: one that is well, one that shows another key, one that does not let us
// in, one where nobody is, one without flock.
func TestCheckLiveOfRealHosts(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	for _, tool := range strings.Fields(recordTools + " sh bash date df cut tr dirname stat") {
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
	var list []checked
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != exitNotAll {
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
	if code != exitOK || !strings.Contains(out, "bare2: record: unfenced") ||
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

// recordsOnADisk makes a folder of records one of an old host, on a disk of its own.
func recordsOnADisk(t *testing.T, dir string) {
	t.Helper()
	mount(t, "-t", "tmpfs", "-o", "size=100m,mode=700", "none", dir)
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	if err := os.WriteFile(filepath.Join(dir, "born"), []byte("000000001 000000001 -\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A folder of records on a disk that is read-only is no well host: every step fails there. And
// a key with a passphrase is read as a node reads it, by the configuration that is named.
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
	if code != exitNotAll || !strings.Contains(out, "--config") {
		t.Errorf("without the passphrase: exit %d: %s %s", code, out, words)
	}
	named := []string{"--config", h.file("node.yaml")}
	code, out, words = h.plainly("", append([]string{"hosts", "check", "fw1", "--live"}, named...)...)
	if code != exitOK {
		t.Errorf("a folder that can be written: exit %d: %s %s", code, out, words)
	}
	mount(t, "-o", "remount,ro", dir)
	code, out, words = h.plainly("", append([]string{"hosts", "check", "fw1", "--live"}, named...)...)
	if code != exitNotAll || !strings.Contains(out, dir+", cannot be written") {
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

// The folder of records is the one that the nodes have in their configuration: that another one
// could be written says nothing.
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
	if code != exitNotAll || !strings.Contains(out, "its folder of records, "+dir+", cannot be written") {
		t.Errorf("exit %d: %s %s", code, out, words)
	}
	h.write("node.yaml", fmt.Sprintf("ssh: {record_dir: %q}\n", t.TempDir()))
	code, out, words = h.plainly("", "hosts", "check", "fw1", "--live", "--config", h.file("node.yaml"))
	if code != exitOK {
		t.Errorf("one that can be written: exit %d: %s %s", code, out, words)
	}
}
