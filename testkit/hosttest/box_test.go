package hosttest_test

import (
	"strings"
	"testing"

	"muster/testkit/hosttest"
)

func TestABoxBootsWhatRaucInstalled(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	b := hosttest.NewBox(t, hosttest.Options{})
	version := func() string {
		b.AwaitReady()
		return b.Do(". /etc/os-release && rauc status --output-format=shell | grep BOOTNAME= | head -n 1 && echo $VERSION_ID")
	}
	if got := version(); got != "RAUC_SYSTEM_BOOTED_BOOTNAME='A'\n1.0\n" {
		t.Errorf("a new box runs %q", got)
	}
	b.Put("/tmp/bundle", b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, false), 0o600)
	b.Do("rauc install /tmp/bundle")
	b.Reboot()
	if got := version(); got != "RAUC_SYSTEM_BOOTED_BOOTNAME='B'\n2.0\n" {
		t.Errorf("after the install it runs %q", got)
	}
	b.Do("rauc status mark-good")

	// An image that hangs is tried three times, then the boot loader takes the other one.
	b.Put("/tmp/bundle", b.Bundle(hosttest.Image{Version: "3.0", Dead: true}, hosttest.Model, false), 0o600)
	b.Do("rauc install /tmp/bundle")
	b.Reboot()
	if got := version(); got != "RAUC_SYSTEM_BOOTED_BOOTNAME='B'\n2.0\n" {
		t.Errorf("after an image that hangs it runs %q", got)
	}

	b.Put("/tmp/bundle", b.Bundle(hosttest.Image{Version: "4.0"}, hosttest.Model, true), 0o600)
	out, err := b.Console("rauc install /tmp/bundle 2>&1")
	if err == nil || !strings.Contains(out, "signature verification failed") {
		t.Errorf("signed by somebody else: %v: %s", err, out)
	}

	b.Put("/tmp/bundle", b.Bundle(hosttest.Image{Version: "5.0", Gone: true}, hosttest.Model, false), 0o600)
	b.Do("rauc install /tmp/bundle")
	b.Off()
	if err := b.Boot(); err == nil {
		t.Error("it came back with an image that takes it down for good")
	}
}
