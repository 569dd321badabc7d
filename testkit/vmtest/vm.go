package vmtest

import (
	"bufio"
	"crypto/sha256"
	_ "embed" // image.sh
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster/testkit/porttest"
)

// patience bounds each action of the machine, which is slow, and slower beside others.
const patience = 10 * time.Minute

//go:embed image.sh
var imageScript string

// VM is a virtual machine that is on. It has the users root and deploy.
type VM struct {
	Port    int    // of its sshd, on 127.0.0.1
	Key     string // path of the private key that may log in
	HostKey string // "ssh-ed25519 AAAA…"

	t testing.TB
	*wires
}

// wires lead to the machine.
type wires struct {
	qmp   string      // path of the socket that controls it
	lines chan string // what its console says; closed when the machine is off

	mu      sync.Mutex
	console net.Conn // guarded by mu: an order and its answer
}

// In is the machine for a part of the test that booted it.
func (v VM) In(t testing.TB) *VM {
	v.t = t
	return &v
}

// New boots a machine and waits until it is up. tree is the path of this repository. The
// machine is gone with the test.
func New(t testing.TB, tree string) *VM {
	t.Helper()
	image := makeImage(t, tree)
	dir, err := os.MkdirTemp("", "vm") // a socket's path may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	v := &VM{Port: porttest.On(t, "127.0.0.1"), Key: filepath.Join(image, "key"), t: t,
		wires: &wires{qmp: filepath.Join(dir, "qmp"), lines: make(chan string, 100)}}
	public, err := os.ReadFile(filepath.Join(image, "host_key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	v.HostKey = strings.Join(strings.Fields(string(public))[:2], " ")
	v.start(image, dir)
	began := time.Now()
	v.awaitReady()
	t.Logf("up after %s", time.Since(began).Round(time.Second))
	return v
}

// makeImage makes the disk unless it is there.
func makeImage(t testing.TB, tree string) string {
	t.Helper()
	name := fmt.Sprintf("%x", sha256.Sum256([]byte(imageScript)))[:12]
	dir, err := filepath.Abs(filepath.Join(tree, ".vm", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "disk")); err == nil {
		return dir
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out, err := exec.Command("/bin/sh", "-c", imageScript, "image.sh", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("the disk cannot be made (it needs root, mmdebstrap, and packages of Debian 12): %v\n%s", err, out)
	}
	t.Logf("the disk was made in %s", time.Since(began).Round(time.Second))
	return dir
}

// start starts the machine. Its serial port 1 is for its kernel, 2 is the console.
func (v *VM) start(image, dir string) {
	v.t.Helper()
	file := func(name string) string { return filepath.Join(image, name) }
	serial, console := filepath.Join(dir, "serial"), filepath.Join(dir, "console")
	l, err := net.Listen("unix", console)
	if err != nil {
		v.t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command("qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
		"-accel", "tcg", "-cpu", "max,la57=off", "-smp", "2", "-m", "512",
		"-kernel", file("vmlinuz"), "-initrd", file("initrd"),
		"-append", "root=/dev/vda rw console=ttyS0 quiet systemd.show_status=1 panic=5",
		"-drive", "if=virtio,format=raw,snapshot=on,file="+file("disk"),
		"-netdev", fmt.Sprintf("user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:%d-:22", v.Port),
		"-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci",
		"-serial", "file:"+serial, "-chardev", "socket,id=console,path="+console,
		"-serial", "chardev:console", "-qmp", "unix:"+v.qmp+",server=on,wait=off")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		v.t.Fatalf("%v: make vm installs it", err)
	}
	v.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if text, _ := os.ReadFile(serial); v.t.Failed() {
			v.t.Logf("the machine said:\n%s%s", &said, text[max(0, len(text)-4000):])
		}
	})
	if err := l.(*net.UnixListener).SetDeadline(time.Now().Add(patience)); err != nil {
		v.t.Fatal(err)
	}
	if v.console, err = l.Accept(); err != nil {
		v.t.Fatalf("the machine does not start: %v", err)
	}
	go v.listen()
}

func (v *VM) listen() {
	defer close(v.lines)
	r := bufio.NewScanner(v.console)
	r.Buffer(nil, 16<<20)
	for r.Scan() {
		v.lines <- r.Text()
	}
}

// awaitReady waits until the machine has booted.
func (v *VM) awaitReady() {
	v.t.Helper()
	late := time.After(patience)
	for {
		select {
		case line, on := <-v.lines:
			switch {
			case !on:
				v.t.Fatal("the machine is off")
			case strings.HasSuffix(line, "ready"):
				return
			}
		case <-late:
			v.t.Fatalf("the machine is not up after %s", patience)
		}
	}
}

// Try runs a shell text as root from the console: without network, session or sshd.
func (v *VM) Try(text string) (said string, code int) {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, err := fmt.Fprintln(v.console, base64.StdEncoding.EncodeToString([]byte(text))); err != nil {
		v.t.Fatal(err)
	}
	late := time.After(patience)
	for {
		select {
		case line, on := <-v.lines:
			words := strings.Split(line, " ")
			if len(words) != 3 || words[0] != "ended" {
				if !on || strings.HasSuffix(line, "ready") {
					v.t.Fatalf("the machine went down during: %s", text)
				}
				continue
			}
			out, err := base64.StdEncoding.DecodeString(words[2])
			if code, bad := strconv.Atoi(words[1]); err == nil && bad == nil {
				return string(out), code
			}
			v.t.Fatalf("the console says: %s", line)
		case <-late:
			v.t.Fatalf("no end after %s of: %s", patience, text)
		}
	}
}

// Do is Try for what must work.
func (v *VM) Do(text string) string {
	v.t.Helper()
	said, code := v.Try(text)
	if code != 0 {
		v.t.Fatalf("%s\nended with %d: %s", text, code, said)
	}
	return said
}

// Await waits until a shell text ends with 0; it is asked again and again.
func (v *VM) Await(text string) {
	v.t.Helper()
	v.Do(fmt.Sprintf("n=0; until { %s\n} > /dev/null 2>&1; do n=$((n + 1)); [ $n -lt 400 ] || "+
		"exit 1; sleep 1; done", text))
}

// Boot is the id of the boot that the machine is in.
func (v *VM) Boot() string {
	v.t.Helper()
	return v.Do("cat /proc/sys/kernel/random/boot_id")
}

// Rebooted runs what reboots the machine, and waits until it is up again.
func (v *VM) Rebooted(by func()) {
	v.t.Helper()
	before := v.Boot()
	by()
	v.awaitReady()
	if v.Boot() == before {
		v.t.Fatal("the console is back, and the machine in the same boot")
	}
}

// Reset is the button on the front: whatever is not on disk is lost.
func (v *VM) Reset() {
	v.t.Helper()
	c, err := net.Dial("unix", v.qmp)
	if err != nil {
		v.t.Fatal(err)
	}
	defer c.Close()
	answers := json.NewDecoder(c)
	for _, order := range []string{"", "qmp_capabilities", "system_reset"} { // it greets first
		if order != "" {
			fmt.Fprintf(c, "{\"execute\": %q}\n", order)
		}
		var answer struct {
			QMP, Return json.RawMessage
			Error       *struct{ Desc string }
		}
		for answer.QMP == nil && answer.Return == nil {
			if err := answers.Decode(&answer); err != nil || answer.Error != nil {
				v.t.Fatalf("%s: %v, %+v", order, err, answer.Error)
			}
		}
	}
}

// Copy copies a file of this machine to a path in the virtual one.
func (v *VM) Copy(from, to string) {
	v.t.Helper()
	out, err := exec.Command("scp", "-q", "-F", "/dev/null", "-i", v.Key, "-P", strconv.Itoa(v.Port),
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", from, "root@127.0.0.1:"+to).
		CombinedOutput()
	if err != nil {
		v.t.Fatalf("scp %s: %v: %s", from, err, out)
	}
}

// Inventory is the line of the machine in an inventory file, under hosts.
func (v *VM) Inventory(name, user string) string {
	return fmt.Sprintf("  - {name: %s, address: 127.0.0.1, port: %d, user: %s, key: %s, host_key: %q}\n",
		name, v.Port, user, v.Key, v.HostKey)
}
