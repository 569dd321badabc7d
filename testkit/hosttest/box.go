package hosttest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Box is a host with firmware in two slots, A and B, kept by a real rauc with a bus of
// its own. Its boot loader is pretended: like that of a real box it tries the first
// slot of its order that has tries left, three times after it was chosen, and then
// the other one.
type Box struct {
	*Host
	keys string // folder of the authority that signs for this box, and of one it does not know
}

// Image is the content of a slot: the state of a box that boots it.
type Image struct {
	Version string // what /etc/os-release says then
	Dead    bool   // the kernel hangs and a watchdog resets it
	Gone    bool   // the box does not come back
	Other   bool   // it comes back with another host key
	Mute    bool   // its service does not start, which makes /run/service
	Bytes   int    // at least so big
}

func (i Image) text() string {
	text := fmt.Sprintf("version=%s dead=%v gone=%v other=%v mute=%v\n", i.Version, i.Dead, i.Gone, i.Other, i.Mute)
	return text + strings.Repeat("\x00", max(i.Bytes, 64<<10)-len(text))
}

// SlotBytes is the size of a slot.
const SlotBytes = 1 << 20

// Model is the model that every box reports.
const Model = "pretended-box"

const boxBoot = `mkdir -p /run/dbus
dbus-daemon --config-file=/etc/pretended/bus.conf --fork
rauc service > /run/rauc.log 2>&1 &
case $(head -n 1 /etc/pretended/image) in *mute=false*) : > /run/service ;; esac
`

const raucConfig = `[system]
compatible=` + Model + `
bootloader=custom
statusfile=/var/lib/rauc.status
mountprefix=/run/rauc
bundle-formats=plain
[keyring]
path=/etc/pretended/ca.pem
[handlers]
bootloader-custom-backend=/etc/pretended/bootloader
[slot.rootfs.0]
device=/var/lib/slots/A
type=raw
bootname=A
[slot.rootfs.1]
device=/var/lib/slots/B
type=raw
bootname=B
`

// loader lets rauc talk to the boot loader.
const loader = `#!/bin/sh
cd /var/lib/bootloader || exit 1
case $1 in
get-primary)
	read -r first second < order
	for slot in $first $second; do
		read -r tries < "tries.$slot"
		if [ "$tries" -gt 0 ]; then echo "$slot"; exit 0; fi
	done
	exit 1 ;;
set-primary)
	case $2 in A) echo A B ;; B) echo B A ;; *) exit 1 ;; esac > order
	echo 3 > "tries.$2" ;;
get-state)
	read -r tries < "tries.$2"
	if [ "$tries" -gt 0 ]; then echo good; else echo bad; fi ;;
set-state)
	case $3 in good) echo 3 ;; bad) echo 0 ;; *) exit 1 ;; esac > "tries.$2" ;;
*) exit 1 ;;
esac
`

const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
<type>system</type>
<listen>unix:path=/run/dbus/system_bus_socket</listen>
<auth>EXTERNAL</auth>
<policy context="default">
<allow own="*"/><allow send_destination="*"/><allow receive_type="*"/><allow send_type="method_call"/>
</policy>
</busconfig>
`

// NewBox makes a box that runs version 1.0 in slot A; slot B is empty. Of o, Boot and
// Before are those of the box.
func NewBox(t testing.TB, o Options) *Box {
	t.Helper()
	for _, name := range []string{"rauc", "dbus-daemon", "mksquashfs", "openssl", "swupdate", "cpio"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("there is no %s: tools/install.sh rauc", name)
		}
	}
	b := &Box{keys: t.TempDir()}
	b.certify(t)
	b.start(t, o)
	return b
}

// Twin makes another box that takes the bundles of this one.
func (b *Box) Twin(t testing.TB, o Options) *Box {
	t.Helper()
	twin := &Box{keys: b.keys}
	twin.start(t, o)
	return twin
}

func (b *Box) start(t testing.TB, o Options) {
	t.Helper()
	o.Boot = boxBoot + o.Boot
	o.Before = func(h *Host, boot int) error {
		if boot == 1 {
			b.assemble(h)
		}
		return load(h)
	}
	b.Host = New(t, o)
	b.AwaitReady()
}

// AwaitReady waits until the box has booted as far as rauc: its sshd is up before.
func (b *Box) AwaitReady() {
	b.t.Helper()
	b.Do("until rauc status > /dev/null 2>&1; do sleep .1; done")
}

// certify makes two authorities with a signer each: ours, and one that boxes do not know.
func (b *Box) certify(t testing.TB) {
	t.Helper()
	const key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
	use := filepath.Join(b.keys, "use")
	if err := os.WriteFile(use, []byte("extendedKeyUsage=emailProtection\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"our", "alien"} {
		at := filepath.Join(b.keys, who)
		for _, words := range []string{
			"req -x509 " + key + " -keyout " + at + ".key -out " + at + ".pem -days 30 -subj /CN=authority",
			"req " + key + " -keyout " + at + "-signer.key -out " + at + ".csr -subj /CN=signer",
			"x509 -req -in " + at + ".csr -CA " + at + ".pem -CAkey " + at + ".key -CAcreateserial -days 30 -extfile " +
				use + " -out " + at + "-signer.pem",
		} {
			if err := command("openssl " + words); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (b *Box) assemble(h *Host) {
	authority, err := os.ReadFile(filepath.Join(b.keys, "our.pem"))
	h.must(err)
	empty := strings.Repeat("\x00", SlotBytes)
	first := Image{Version: "1.0"}.text()
	for _, f := range []struct {
		path, text string
		mode       os.FileMode
	}{
		{"etc/lower/rauc/system.conf", raucConfig, 0o644},
		{"etc/lower/pretended/ca.pem", string(authority), 0o644},
		{"etc/lower/pretended/bus.conf", busConfig, 0o644},
		{"etc/lower/pretended/bootloader", loader, 0o755},
		{"var/lib/lower/slots/A", first + empty[len(first):], 0o600},
		{"var/lib/lower/slots/B", empty, 0o600},
		{"var/lib/upper/bootloader/order", "A B\n", 0o600},
		{"var/lib/upper/bootloader/tries.A", "3\n", 0o600},
		{"var/lib/upper/bootloader/tries.B", "0\n", 0o600},
	} {
		h.must(os.MkdirAll(filepath.Join(h.state, filepath.Dir(f.path)), 0o755))
		h.file(f.path, f.text, f.mode)
	}
}

// load is the boot loader: it chooses a slot, and makes the disk what is in it.
func load(h *Host) error {
	for {
		slot, err := choose(h)
		if err != nil {
			return err
		}
		image, err := h.read("var/lib", "slots/"+slot)
		if err != nil {
			return err
		}
		line, _, _ := strings.Cut(image, "\n")
		switch {
		case !strings.HasPrefix(line, "version=") || strings.Contains(line, "dead=true"):
			continue
		case strings.Contains(line, "gone=true"):
			return errors.New("what is in slot " + slot + " hangs")
		case strings.Contains(line, "other=true"):
			h.Rekey()
		}
		h.SetCmdline("console=ttyS0 rauc.slot=" + slot)
		h.file("etc/lower/pretended/image", line+"\n", 0o644)
		version, _, _ := strings.Cut(strings.TrimPrefix(line, "version="), " ")
		h.file("etc/lower/os-release", "ID=box\nVERSION_ID="+version+"\n", 0o644)
		return nil
	}
}

// choose takes one of the tries of the first slot that has one left.
func choose(h *Host) (string, error) {
	order, err := h.read("var/lib", "bootloader/order")
	if err != nil {
		return "", err
	}
	for _, slot := range strings.Fields(order) {
		tries, err := h.read("var/lib", "bootloader/tries."+slot)
		if err != nil {
			return "", err
		}
		var n int
		if _, err := fmt.Sscan(tries, &n); err != nil {
			return "", err
		}
		if n > 0 {
			h.file("var/lib/upper/bootloader/tries."+slot, fmt.Sprintln(n-1), 0o600)
			return slot, nil
		}
	}
	return "", errors.New("no slot has a try left")
}

// read reads a file from the disk of a host that is off.
func (h *Host) read(dir, name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(h.state, dir, "upper", name))
	if errors.Is(err, fs.ErrNotExist) {
		data, err = os.ReadFile(filepath.Join(h.state, dir, "lower", name))
	}
	return string(data), err
}

// Bundle makes a signed bundle with an image for boxes of a model. alien: it is signed
// by somebody whom no box knows.
func (b *Box) Bundle(i Image, model string, alien bool) string {
	b.t.Helper()
	dir := b.t.TempDir()
	b.must(os.Mkdir(filepath.Join(dir, "in"), 0o755))
	for name, text := range map[string]string{
		"rootfs.img": i.text(),
		"manifest.raucm": "[update]\ncompatible=" + model + "\nversion=" + i.Version +
			"\n[bundle]\nformat=plain\n[image.rootfs]\nfilename=rootfs.img\n",
	} {
		b.must(os.WriteFile(filepath.Join(dir, "in", name), []byte(text), 0o644))
	}
	at := filepath.Join(b.keys, "our-signer")
	if alien {
		at = filepath.Join(b.keys, "alien-signer")
	}
	path := filepath.Join(dir, "bundle.raucb")
	b.must(command(fmt.Sprintf("rauc --cert %s.pem --key %s.key bundle %s %s", at, at, filepath.Join(dir, "in"), path)))
	data, err := os.ReadFile(path)
	b.must(err)
	return string(data)
}

// Parcel is a bundle for swupdate, which writes the image into slot B. It is for
// boxes of a hardware, which is the name and revision that swupdate's -H names.
func (b *Box) Parcel(i Image, hardware string, alien bool) string {
	b.t.Helper()
	dir := b.t.TempDir()
	name, revision, _ := strings.Cut(hardware, ":")
	image := i.text()
	sum := sha256.Sum256([]byte(image))
	about := fmt.Sprintf(`software = {
	version = %q;
	%s = {
		hardware-compatibility: [%q];
		files: ({ filename = "rootfs.img"; path = "/var/lib/slots/B"; sha256 = "%x"; });
	};
}
`, i.Version, name, revision, sum)
	b.must(os.WriteFile(filepath.Join(dir, "rootfs.img"), []byte(image), 0o644))
	b.must(os.WriteFile(filepath.Join(dir, "sw-description"), []byte(about), 0o644))
	at := filepath.Join(b.keys, "our-signer")
	if alien {
		at = filepath.Join(b.keys, "alien-signer")
	}
	b.must(command(fmt.Sprintf("openssl cms -sign -in %s/sw-description -out %s/sw-description.sig -signer %s.pem "+
		"-inkey %s.key -outform DER -nosmimecap -binary", dir, dir, at, at)))
	pack := exec.Command("cpio", "--quiet", "-o", "-H", "crc")
	pack.Dir = dir
	pack.Stdin = strings.NewReader("sw-description\nsw-description.sig\nrootfs.img\n")
	parcel, err := pack.Output()
	b.must(err)
	return string(parcel)
}

// Slots is the sum of both slots, and what the boot loader will take next.
func (b *Box) Slots() string {
	b.t.Helper()
	return b.Do("cd /var/lib && sha256sum slots/A slots/B && cat bootloader/order && head -n 1 /proc/cmdline")
}
