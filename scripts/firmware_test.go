package scripts_test

import (
	"strings"
	"testing"

	"muster/testkit/hosttest"
)

// bringBundle puts a bundle where the upload would.
func bringBundle(d *desk, bundle string) {
	d.t.Helper()
	d.do("folder")
	d.h.Put("/var/lib/muster/firmware/bundle", bundle, 0o600)
}

// learn does the first step and keeps what it found, as the worker would.
func learn(t *testing.T, d *desk) string {
	t.Helper()
	said := d.do("preflight")
	for _, name := range []string{"model", "version", "slot"} {
		_, rest, _ := strings.Cut(said, name+` "`)
		v, _, _ := strings.Cut(rest, `"`)
		d.args["saved."+map[string]string{"model": "box", "version": "runs", "slot": "slot"}[name]] = v
	}
	_, todo, _ := strings.Cut(said, "to do: ")
	d.args["saved.todo"] = strings.TrimSpace(todo)
	return said
}

// install does that step and keeps what it said, as the worker would.
func install(d *desk) {
	d.t.Helper()
	_, rest, _ := strings.Cut(d.do("install"), "installed: \"")
	d.args["saved.installed"], _, _ = strings.Cut(rest, `"`)
}

func firmwareDesk(t *testing.T, b *hosttest.Box, version string) *desk {
	t.Helper()
	return newDesk(t, b.Host, "firmware", map[string]string{"version": version, "service": "test -e /run/service"})
}

func TestFirmwareTextsInstallBootAndProve(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	b := hosttest.NewBox(t, hosttest.Options{})
	d := firmwareDesk(t, b, "2.0")
	d.args["model"], d.args["space"] = hosttest.Model, "1"
	if said := learn(t, d); !strings.Contains(said,
		`model "pretended-box", version "1.0", slot "A", to do: install`) {
		t.Errorf("preflight said %q", said)
	}
	before := b.Slots()
	bringBundle(d, b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, false))
	d.do("verify")
	install(d)
	after := b.Slots()
	if a, _, _ := strings.Cut(before, "\n"); !strings.HasPrefix(after, a) {
		t.Errorf("the slot that runs was written:\n%s\n%s", before, after)
	}
	if !strings.Contains(after, "\nA B\n") || strings.Count(before, "  slots/") != 2 || before == after {
		t.Errorf("before:\n%s\nafter the install:\n%s", before, after)
	}
	b.Reboot() // nobody asked for it: it takes the old slot
	b.AwaitReady()
	if said := learn(t, d); !strings.Contains(said, `version "1.0", slot "A"`) {
		t.Errorf("after a boot that nobody asked for: %q", said)
	}
	installed := d.args["saved.installed"]
	if !strings.Contains(installed, "2.0 ") {
		t.Errorf("what was installed is %q", installed)
	}
	d.args["saved.installed"] = "2.0 something else"
	d.refuses("boot.command", "3", "the other slot holds 2.0 ")
	d.args["saved.installed"] = installed
	d.do("boot.command")
	b.AwaitBoot(3)
	awaitReady(t, d)
	d.args["saved.box"] = "x1"
	d.refuses("prove.check", "3", "the host came back as a pretended-box, and was a x1")
	d.args["saved.box"] = hosttest.Model
	d.do("prove.check", "good")
	if said := d.do("preflight"); !strings.Contains(said, `version "2.0", slot "B", to do: nothing`) {
		t.Errorf("at the end: %q", said)
	}
	if left := b.Do("ls /var/lib/muster/firmware; cat /var/lib/bootloader/tries.B"); left != "3\n" {
		t.Errorf("left behind or not marked good: %q", left)
	}

	// And back.
	d.args["saved.back"] = "boot"
	if said := d.do("back"); !strings.Contains(said, "back: boot") {
		t.Errorf("back said %q", said)
	}
	d.do("back-boot.command")
	b.AwaitBoot(4)
	awaitReady(t, d)
	d.do("back-proof")
	if said := d.do("back"); !strings.Contains(said, "back: done") {
		t.Errorf("back again said %q", said)
	}
}

// awaitReady asks as the worker does, but without its pauses.
func awaitReady(t *testing.T, d *desk) {
	t.Helper()
	var out string
	var err error
	for range 200 {
		if out, err = d.try("boot.ready"); err == nil {
			return
		}
		if !strings.Contains(err.Error(), "exit status 75") {
			break
		}
	}
	t.Fatalf("not ready: %v\n%s", err, out)
}

func TestFirmwareTextsRefuseWhatDoesNotFit(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	b := hosttest.NewBox(t, hosttest.Options{})
	before := b.Slots()
	two := hosttest.Image{Version: "2.0"}
	for _, test := range []struct {
		name, step, code, words string
		image                   hosttest.Image
		model                   string
		alien                   bool
		args                    map[string]string
	}{
		{name: "signature", step: "verify", code: "1", words: "signature verification failed", image: two, alien: true},
		{name: "model", step: "verify", code: "1", words: "is for other-box, this is pretended-box", image: two,
			model: "other-box"},
		{name: "version", step: "verify", code: "1", words: "has version 2.1, asked for was 2.0",
			image: hosttest.Image{Version: "2.1"}},
		{name: "too big", step: "verify", code: "1", words: "has 2097152 bytes, slot /var/lib/slots/B has 1048576",
			image: hosttest.Image{Version: "2.0", Bytes: 2 * hosttest.SlotBytes}},
		{name: "wrong host", step: "preflight", code: "1", words: "the host is a pretended-box, want x1",
			args: map[string]string{"model": "x1"}},
		{name: "no space", step: "preflight", code: "3", words: "MiB free, want 1000000000",
			args: map[string]string{"space": "1000000000"}},
		{name: "peer", step: "preflight", code: "3", words: "the peer is not well: its command ended with 4",
			args: map[string]string{"peer": "exit 4"}},
		{name: "driver", step: "preflight", code: "3", words: "say version_is", args: map[string]string{"driver": "generic"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := firmwareDesk(t, b, "2.0")
			for name, v := range test.args {
				d.args[name] = v
			}
			if test.step != "preflight" {
				if test.model == "" {
					test.model = hosttest.Model
				}
				bringBundle(d, b.Bundle(test.image, test.model, test.alien))
			}
			if test.step == "install" {
				d.do("verify")
			}
			d.refuses(test.step, test.code, test.words)
			if left := b.Do("ls /var/lib/muster/firmware 2>&1 || :"); strings.Contains(left, "bundle") {
				t.Errorf("left behind: %s", left)
			}
			if now := b.Slots(); now != before {
				t.Errorf("slots were\n%s\nand are\n%s", before, now)
			}
		})
	}
}

func TestFirmwareTextsOfOtherDrivers(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	const loader = "/etc/pretended/bootloader "
	for driver, args := range map[string]map[string]string{
		"swupdate": {"options": "-H box:1.0 -k /etc/pretended/ca.pem", "activate": loader + "set-primary B",
			"slot_is": loader + "get-primary", "good": loader + "set-state B good", "back": loader + "set-primary A"},
		"generic": {"version_is": `. /etc/os-release; echo "$VERSION_ID"`, "verify": `rauc info "$1"`,
			"slot_is": loader + "get-primary", "install": `rauc install "$1" && rauc status mark-active booted`,
			"activate": "rauc status mark-active other", "good": "rauc status mark-good",
			"back": "rauc status mark-active other", "ready": "rauc status > /dev/null || exit 75"},
	} {
		t.Run(driver, func(t *testing.T) {
			b := hosttest.NewBox(t, hosttest.Options{})
			d := newDesk(t, b.Host, "firmware", args)
			d.args["version"], d.args["driver"], d.args["service"] = "2.0", driver, "test -e /run/service"
			pack := func(model string, alien bool) string {
				if driver == "swupdate" {
					return b.Parcel(hosttest.Image{Version: "2.0"}, model, alien)
				}
				return b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, alien)
			}
			learn(t, d)
			before := b.Slots()
			bringBundle(d, pack("box:1.0", true))
			d.refuses("verify", "1", "")
			if driver == "swupdate" {
				bringBundle(d, pack("other:1.0", false))
				d.refuses("verify", "1", "HW compatibility not found")
			}
			if now := b.Slots(); now != before {
				t.Errorf("slots were\n%s\nand are\n%s", before, now)
			}
			bringBundle(d, pack("box:1.0", false))
			d.do("verify")
			install(d)
			d.do("boot.command")
			b.AwaitBoot(2)
			awaitReady(t, d)
			d.do("prove.check", "good")
			if said := d.do("preflight"); !strings.Contains(said, `version "2.0", slot "B", to do: nothing`) {
				t.Errorf("at the end: %q", said)
			}
		})
	}
}
