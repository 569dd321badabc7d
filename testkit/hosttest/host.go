package hosttest

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/testkit/sshtest"
)

// patience bounds each action of a host on a loaded machine.
const patience = 60 * time.Second

//go:embed init.sh
var initText string

// hosts counts them, for names and addresses that differ.
var hosts atomic.Int32

// Options says what kind of host is wanted. The zero value is a plain one.
type Options struct {
	Name string        // empty: host1, host2, …
	Boot string        // shell text that starts its services, each time before sshd
	Away time.Duration // how long it is gone when it reboots

	// Before is called before each boot, with its number from 1; it may exchange files
	// of the disk or the command line of the kernel. An error means that the host does
	// not come up, and is no failure of the test.
	Before func(h *Host, boot int) error
}

// Host is a pretended host. Its methods may be called from several goroutines.
type Host struct {
	Name    string
	Address string
	Key     string // path of the private key that may log in as root
	HostKey string // "ssh-ed25519 AAAA…"

	t     testing.TB
	o     Options
	state string // the folder of its disk
	cable string
	mac   string

	mu    sync.Mutex
	pid   int           // guarded by mu: of its first process; 0: it is off
	gone  chan struct{} // guarded by mu: closed when that process has ended
	boots int           // guarded by mu
	news  chan struct{} // guarded by mu: closed at the next change, then another
	over  bool          // guarded by mu: the test is at its end
}

// New makes a host and boots it. It is gone with the test.
func New(t testing.TB, o Options) *Host {
	t.Helper()
	if os.Getenv(mark) == "" {
		t.Fatal("a test that wants hosts begins with hosttest.Inside")
	}
	n := int(hosts.Add(1))
	if o.Name == "" {
		o.Name = fmt.Sprint("host", n)
	}
	h := &Host{Name: o.Name, Address: fmt.Sprint(network, n/250, ".", n%250+2), t: t, o: o,
		state: t.TempDir(), cable: fmt.Sprint("cable", n), mac: fmt.Sprintf("02:00:00:00:%02x:%02x", n/250, n%250),
		news: make(chan struct{})}
	h.furnish()
	t.Cleanup(func() {
		h.mu.Lock()
		h.over = true
		h.mu.Unlock()
		h.Off()
	})
	if err := h.Boot(); err != nil {
		t.Fatal(err)
	}
	return h
}

// furnish makes the disk of the host: lower holds its original files, upper holds what it writes
// itself.
func (h *Host) furnish() {
	h.t.Helper()
	for _, dir := range []string{"etc/lower/pretended", "root/lower", "usr/local/lower/sbin", "var/lib/lower"} {
		h.must(os.MkdirAll(filepath.Join(h.state, dir), 0o755))
	}
	for _, dir := range []string{"etc", "root", "usr/local", "var/lib"} {
		h.must(os.MkdirAll(filepath.Join(h.state, dir, "upper"), 0o755))
		h.must(os.MkdirAll(filepath.Join(h.state, dir, "work"), 0o755))
	}
	var client, public string
	client, h.HostKey = sshtest.NewKey(h.t)
	h.Key, public = sshtest.NewKey(h.t)
	key, err := os.ReadFile(client)
	h.must(err)
	h.file("etc/lower/pretended/host_key", string(key), 0o600)
	h.file("etc/lower/pretended/authorized_keys", public+"\n", 0o600)
	h.file("etc/lower/pretended/sshd_config", sshdConfig, 0o600)
	h.file("etc/lower/pretended/boot", h.o.Boot+"\n", 0o600)
	// Without PAM an account without a password ("!") counts as locked.
	h.file("etc/lower/shadow", "root:*:19000:0:99999:7:::\nsshd:*:19000::::::\n", 0o600)
	// The real one asks systemd. In a namespace of processes the kernel ends just these.
	for _, name := range []string{"reboot", "poweroff", "halt"} {
		h.file("usr/local/lower/sbin/"+name, "#!/bin/sh\nexec busybox "+name+" -f -n\n", 0o755)
	}
	h.file("cmdline", "pretended\n", 0o644)
}

const sshdConfig = `Port 22
HostKey /etc/pretended/host_key
AuthorizedKeysFile /etc/pretended/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
UseDNS no
PidFile /run/sshd.pid
LogLevel INFO
Subsystem sftp internal-sftp
`

// SetCmdline sets what /proc/cmdline says from the next boot on.
func (h *Host) SetCmdline(text string) { h.file("cmdline", text+"\n", 0o644) }

// Rekey gives the host another key, as if another machine had its address from the
// next boot on.
func (h *Host) Rekey() {
	path, _ := sshtest.NewKey(h.t)
	key, err := os.ReadFile(path)
	h.must(err)
	h.file("etc/lower/pretended/host_key", string(key), 0o600)
}

func (h *Host) file(name, text string, mode os.FileMode) {
	h.must(os.WriteFile(filepath.Join(h.state, name), []byte(text), mode))
}

func (h *Host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// Boot starts the host and waits until its sshd listens. A host that is on is left
// alone.
func (h *Host) Boot() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pid != 0 || h.over {
		return nil
	}
	if h.o.Before != nil {
		if err := h.o.Before(h, h.boots+1); err != nil {
			return err
		}
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/uuid") // another one each time
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(h.state, "boot_id"), id, 0o644); err != nil {
		return err
	}
	if err := h.start(); err != nil {
		return fmt.Errorf("%s does not boot: %w", h.Name, err)
	}
	h.boots++
	h.tell()
	return nil
}

// tell says that something changed; the caller has mu.
func (h *Host) tell() {
	close(h.news)
	h.news = make(chan struct{})
}

// start makes the namespaces; the caller has mu.
func (h *Host) start() error {
	cmd := exec.Command("/bin/sh", "-c", initText, "init", h.state, h.Name, h.Address, h.mac)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS |
		syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC, Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = write, write
	err = cmd.Start()
	write.Close()
	if err != nil {
		out.Close()
		return err
	}
	h.pid, h.gone = cmd.Process.Pid, make(chan struct{})
	go h.bury(cmd, h.gone)
	said := newTranscript(out)
	if err = said.await("plug me in"); err == nil {
		err = h.plug()
	}
	if err == nil {
		fmt.Fprintln(in, "go")
		err = said.await("Server listening on 0.0.0.0")
	}
	in.Close()
	if err != nil {
		cmd.Process.Kill()
	}
	return err
}

func (h *Host) plug() error {
	// The kernel takes its time to clear away the namespace of the boot before, with the
	// other end of the cable. That it is away already is no mistake.
	_ = command("ip link del " + h.cable)
	return errors.Join(
		command(fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d", h.cable, h.pid)),
		command(fmt.Sprintf("ip link set %s master br0 up", h.cable)))
}

// bury waits for the end of a boot. If the host asked for another one itself, it gets it:
// the kernel then ends the first process of the namespace by SIGHUP.
func (h *Host) bury(cmd *exec.Cmd, gone chan struct{}) {
	err := cmd.Wait()
	h.mu.Lock()
	h.pid = 0
	close(gone)
	h.tell()
	h.mu.Unlock()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGHUP {
		return
	}
	time.AfterFunc(h.o.Away, func() {
		if err := h.Boot(); err != nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			if !h.over {
				h.t.Logf("%s does not come back: %v", h.Name, err)
			}
		}
	})
}

// Off turns the power off. Data that was not on the disk is lost.
func (h *Host) Off() {
	h.mu.Lock()
	pid, gone := h.pid, h.gone
	h.mu.Unlock()
	if pid != 0 {
		syscall.Kill(pid, syscall.SIGKILL)
		<-gone
	}
}

// Reboot is power off and on again.
func (h *Host) Reboot() {
	h.t.Helper()
	h.Off()
	h.must(h.Boot())
}

// AwaitBoot waits until the host is up for the nth time.
func (h *Host) AwaitBoot(n int) {
	h.t.Helper()
	h.await(fmt.Sprintf("up for boot %d", n), func() bool { return h.boots >= n && h.pid != 0 })
}

// AwaitOff waits until the host is off.
func (h *Host) AwaitOff() {
	h.t.Helper()
	h.await("off", func() bool { return h.pid == 0 })
}

// Boots returns the number of boots of the host.
func (h *Host) Boots() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.boots
}

func (h *Host) await(what string, as func() bool) {
	h.t.Helper()
	late := time.After(patience)
	for {
		h.mu.Lock()
		ok, news := as(), h.news
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case <-late:
			h.t.Fatalf("%s is not %s after %s", h.Name, what, patience)
		}
	}
}

// Inventory is the line of the host in an inventory file, under hosts; more are
// further keys of it, such as "group: pair1".
func (h *Host) Inventory(more ...string) string {
	return fmt.Sprintf("  - {%s}\n", strings.Join(append([]string{"name: " + h.Name, "address: " + h.Address,
		"user: root", "key: " + h.Key, fmt.Sprintf("host_key: %q", h.HostKey)}, more...), ", "))
}
