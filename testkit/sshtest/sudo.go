package sshtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The user who logs in to a host of StartSudo, and the password that its sudo asks for.
const (
	SudoLogin    = "muster-ops"
	SudoPassword = "correct horse battery"
)

// sudoHash is that of SudoPassword, by openssl passwd -6 -salt muster.
const sudoHash = "$6$muster$adDV.hcMMbOnX9NCa0CXOjbHAKqdKzUTmmlalKKc" +
	"nOKlDiEdJQX3wr7Zki1HpwTwuInyhepq6zuWJo49ds0YW1"

// StartSudo starts an sshd that lets SudoLogin in, and on which sudo has those rules, such as
// "NOPASSWD: ALL". It sees users, rules and PAM of its own in a mount namespace: nothing of
// that is left on the machine. It needs root, whose home is another one there.
func StartSudo(t testing.TB, rule string, o Options) SSHD {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a host with sudo of its own needs root")
	}
	if _, err := os.Stat("/usr/bin/sudo"); err != nil {
		if _, err := os.Stat("/etc/debian_version"); err == nil {
			t.Fatal("there is no sudo: apt-get install sudo")
		}
		t.Skip("there is no sudo on this machine")
	}
	const id = "59871" // of nobody else
	dir := t.TempDir()
	add := func(name, line string, mode os.FileMode) {
		old, err := os.ReadFile("/etc/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(old), ":/root:", ":"+filepath.Join(dir, "root")+":", 1)
		text = strings.TrimRight(text, "\n") + "\n" + line + "\n"
		writeMode(t, filepath.Join(dir, name), text, mode)
	}
	add("passwd", fmt.Sprintf("%s:x:%s:%s::/:/bin/sh", SudoLogin, id, id), 0o644)
	add("group", fmt.Sprintf("%s:x:%s:", SudoLogin, id), 0o644)
	add("shadow", fmt.Sprintf("%s:%s:19000:0:99999:7:::", SudoLogin, sudoHash), 0o600)
	writeMode(t, filepath.Join(dir, "sudoers"), "Defaults env_reset, timestamp_timeout=0, lecture=always\n"+
		"Defaults secure_path=/usr/sbin:/usr/bin:/sbin:/bin\n"+SudoLogin+" ALL=(ALL:ALL) "+rule+"\n", 0o440)
	writeMode(t, filepath.Join(dir, "pam"), "auth required pam_unix.so nodelay\n"+
		"account required pam_permit.so\nsession required pam_permit.so\n", 0o644)
	var setup strings.Builder
	for _, b := range [][2]string{{"passwd", "/etc/passwd"}, {"group", "/etc/group"}, {"shadow", "/etc/shadow"},
		{"sudoers", "/etc/sudoers"}, {"pam", "/etc/pam.d/sudo"}} {
		fmt.Fprintf(&setup, "mount --bind '%s' %s || exit\n", filepath.Join(dir, b[0]), b[1])
	}
	o.within = setup.String()
	s := StartSSHD(t, o)
	letIn(t, s.Key)
	s.User, s.Host.User = SudoLogin, SudoLogin
	s.Host.Become = "sudo"
	return s
}

// letIn lets any user read by whose key it logs in.
func letIn(t testing.TB, key string) {
	t.Helper()
	dir := filepath.Dir(key)
	for path, mode := range map[string]os.FileMode{filepath.Join(dir, "authorized_keys"): 0o644, dir: 0o755,
		filepath.Dir(dir): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func writeMode(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	write(t, path, text)
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
