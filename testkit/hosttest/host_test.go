package hosttest_test

import (
	"os"
	"strings"
	"testing"

	"muster/testkit/hosttest"
)

func TestAHostIsOneOfItsOwn(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	machine, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.New(t, hosttest.Options{Boot: "echo up >> /var/lib/booted"})
	first := h.Do("cat /proc/sys/kernel/random/boot_id")
	if first == string(machine) {
		t.Error("the host has the boot id of the machine")
	}
	if name := h.Do("hostname"); name != h.Name+"\n" {
		t.Errorf("it is called %q", name)
	}
	h.Do("echo kept > /etc/kept; echo lost > /run/lost")
	h.Do("mkdir -p /var/lib/muster; echo kept > /var/lib/muster/kept")
	_, _ = h.Console("setsid reboot >/dev/null 2>&1 &") // which may be quicker than the end of this shell
	h.AwaitBoot(2)
	if again := h.Do("cat /proc/sys/kernel/random/boot_id"); again == first || len(again) != 37 {
		t.Errorf("boot id %q after %q", again, first)
	}
	got := h.Do("cat /etc/kept /var/lib/muster/kept /var/lib/booted; ls /run")
	if !strings.HasPrefix(got, "kept\nkept\nup\nup\n") || strings.Contains(got, "lost") {
		t.Errorf("after the reboot there is %q", got)
	}
	for _, path := range []string{"/etc/kept", "/var/lib/booted", "/run/lost"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("the host wrote %s of the machine", path)
		}
	}
	h.Reboot()
	h.Off()
	h.AwaitOff()
	if _, err := h.Console("true"); err == nil {
		t.Error("a host that is off does something")
	}
}
