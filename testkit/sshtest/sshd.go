// Package sshtest starts real SSH servers for tests.
//
// It knows nothing of package remote, so that the tests of that package can use
// it too.
package sshtest

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
	"muster/testkit/porttest"
)

// Options says what kind of sshd is wanted. The zero value is one on 127.0.0.2.
type Options struct {
	Address string   // where it listens: one of 127.0.0.0/8; empty: 127.0.0.2
	Config  []string // further lines of sshd_config, like "MaxSessions 1"; the first of a kind counts

	// Certify makes the certificate of the host key; nil: it has none.
	Certify func(key ssh.PublicKey) *ssh.Certificate

	within string // a shell text that is run before it, in a mount namespace; empty: in none
}

// SSHD is a running OpenSSH server that lets the user of the tests in.
type SSHD struct {
	Address string
	Port    int
	User    string
	Key     string     // path of the private key that may log in
	HostKey string     // "ssh-ed25519 AAAA…"
	Host    fleet.Host // all of that, ready to be used; its name is "sshd"
	PID     int
}

// StartSSHD starts an sshd with keys of its own, which ends with the test. On a
// Debian machine where the tests run as root it must be installed; elsewhere the
// test is skipped if it is not.
func StartSSHD(t testing.TB, o Options) SSHD {
	t.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.2"
	}
	binary := findSSHD(t)
	dir := t.TempDir()
	hostKey := writeKey(t, filepath.Join(dir, "host_key"))
	clientKey := writeKey(t, filepath.Join(dir, "id"))
	write(t, filepath.Join(dir, "authorized_keys"), clientKey+"\n")
	me, err := user.Current()
	if err != nil {
		t.Fatalf("who runs the test: %v", err)
	}

	s := SSHD{
		Address: o.Address,
		User:    me.Username,
		Key:     filepath.Join(dir, "id"),
		HostKey: hostKey,
	}
	if o.Certify != nil {
		certificate := filepath.Join(dir, "host_key-cert.pub")
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(hostKey))
		if err != nil {
			t.Fatalf("host key: %v", err)
		}
		write(t, certificate, string(ssh.MarshalAuthorizedKey(o.Certify(key))))
		o.Config = append(o.Config, "HostCertificate "+certificate)
	}
	config := filepath.Join(dir, "sshd_config")
	write(t, config, sshdConfig(dir, o.Config))
	s.Port, s.PID = serve(t, o.command(binary, config), o.Address)
	s.Host = fleet.Host{
		Name:     "sshd",
		Address:  s.Address,
		Port:     s.Port,
		User:     s.User,
		Key:      s.Key,
		HostKeys: []string{s.HostKey},
		Zone:     fleet.DefaultZone,
		Fence:    fleet.FenceNone,
	}
	return s
}

// Knows reports whether the installed sshd accepts a line of sshd_config, which depends on its
// version.
func Knows(t testing.TB, line string) bool {
	t.Helper()
	dir := t.TempDir()
	writeKey(t, filepath.Join(dir, "host_key"))
	config := filepath.Join(dir, "sshd_config")
	write(t, config, sshdConfig(dir, []string{line}))
	said, err := exec.Command(findSSHD(t), "-t", "-f", config).CombinedOutput()
	if err != nil && !bytes.Contains(said, []byte("Bad configuration option")) {
		t.Fatalf("sshd -t: %v: %s", err, said)
	}
	return err == nil
}

// NewKey writes a new private key to a temporary file and returns its path and
// its public key, for logins that must fail.
func NewKey(t testing.TB) (path, public string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "id")
	return path, writeKey(t, path)
}

// findSSHD returns the path of sshd; it runs itself again, so that must be
// absolute.
func findSSHD(t testing.TB) string {
	t.Helper()
	for _, path := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	if _, err := os.Stat("/etc/debian_version"); err == nil && os.Getuid() == 0 {
		t.Fatal("there is no sshd: apt-get install openssh-server")
	}
	t.Skip("there is no sshd on this machine")
	return ""
}

func sshdConfig(dir string, more []string) string {
	lines := append([]string{}, more...) // sshd takes the first line of a kind
	return strings.Join(append(lines,
		"HostKey "+filepath.Join(dir, "host_key"),
		"AuthorizedKeysFile "+filepath.Join(dir, "authorized_keys"),
		"PermitRootLogin prohibit-password",
		"PasswordAuthentication no",
		"KbdInteractiveAuthentication no",
		"StrictModes no", // temporary directories are not what it likes
		"UsePAM "+usePAM(),
		"SetEnv HOME="+dir, // else the user's own shell start-up files take part
		"PidFile none",
		"LogLevel VERBOSE",
	), "\n") + "\n"
}

// usePAM is needed only where the account has no password at all ("!"): without
// PAM that counts as locked.
func usePAM() string {
	shadow, err := os.ReadFile("/etc/shadow")
	if err == nil && os.Getuid() == 0 && bytes.HasPrefix(shadow, []byte("root:!")) {
		return "yes"
	}
	return "no"
}

// command is that of sshd, without its address.
func (o Options) command(binary, config string) []string {
	sshd := []string{binary, "-D", "-e", "-f", config}
	if o.within == "" {
		return sshd
	}
	return append([]string{"unshare", "--mount", "sh", "-c", o.within + `exec "$@"`, "sh"}, sshd...)
}

// serve starts sshd on a free port. If a program that does not ask porttest takes the port first,
// serve tries another one.
func serve(t testing.TB, command []string, address string) (port, pid int) {
	t.Helper()
	if os.Getuid() == 0 {
		// Debian makes this directory when the service starts.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatalf("sshd needs it: %v", err)
		}
	}
	var err error
	for range 5 {
		port = porttest.On(t, address)
		if pid, err = start(t, command, address, port); err == nil {
			return port, pid
		}
	}
	t.Fatalf("sshd does not start: %v", err)
	return 0, 0
}

// start starts sshd and waits until it listens, which it says on stderr.
func start(t testing.TB, command []string, address string, port int) (pid int, err error) {
	t.Helper()
	command = append(command, "-p", fmt.Sprint(port), "-o", "ListenAddress="+address)
	cmd := exec.Command(command[0], command[1:]...)
	// A test that is killed cleans nothing up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	said := &lines{}
	listening, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		said.read(bufio.NewScanner(stderr), listening)
	}()
	stop := func() {
		// Its sessions have its stderr too and may outlive it: Wait must close
		// the pipe, reading to its end would take as long as they live.
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_ = cmd.Wait()                          // killed by our signal
		<-ended
	}

	select {
	case <-listening:
	case <-ended:
		stop()
		return 0, errors.New(said.String())
	case <-time.After(20 * time.Second):
		stop()
		return 0, fmt.Errorf("it does not listen: %s", said)
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("sshd on %s:%d said:\n%s", address, port, said)
		}
	})
	return cmd.Process.Pid, nil
}

// lines collects what sshd says.
type lines struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *lines) read(scanner *bufio.Scanner, listening chan<- struct{}) {
	for scanner.Scan() {
		l.mu.Lock()
		fmt.Fprintln(&l.text, scanner.Text())
		l.mu.Unlock()
		if listening != nil && strings.HasPrefix(scanner.Text(), "Server listening on ") {
			close(listening)
			listening = nil
		}
	}
}

// String returns all that was said.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// writeKey makes a key pair, writes the private one and returns the public one.
func writeKey(t testing.TB, path string) (public string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatalf("key: %v", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatalf("key: %v", err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatalf("key: %v", err)
	}
	write(t, path, string(pem.EncodeToMemory(block)))
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
