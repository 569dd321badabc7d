package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"muster/internal/hosttest"
	"muster/jobs"
)

// always is a window that is open all day, for whoever owns the boxes.
const always = `windows:
  - name: always
    customer: acme
    zone: UTC
    start: "0 0 * * *"
    length: 24h
    cutoff: 0s
    approval: none
`

// newBox makes a box with firmware of version 1.0, and a house that can reach it and asks
// so often whether it is back.
func newBox(t *testing.T, probes int, more ...string) (*house, *hosttest.Box) {
	t.Helper()
	b := hosttest.NewBox(t, hosttest.Options{})
	h := newCellar(t, "hosts:\n"+b.Inventory(append([]string{"customer: acme"}, more...)...))
	h.write("quick.yaml", quick(t, "firmware", probes))
	h.configure(map[string]any{"ssh": map[string]any{"record_dir": "/var/lib/muster/record"},
		"runbooks": []string{h.file("quick.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.write("windows.yaml", always)
	if out, code := h.muster("windows", "apply", h.file("windows.yaml")); code != 0 {
		t.Fatalf("muster windows apply: exit %d: %s", code, out)
	}
	h.master()
	return h, b
}

// quick is a built-in runbook with other numbers for its probes, and another name.
func quick(t *testing.T, name string, probes int) string {
	t.Helper()
	data, err := os.ReadFile("../../scripts/builtin/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "name: "+name+"\n", "name: "+name+"-quick\n", 1)
	for from, to := range map[string]string{
		`unreachable: \{.*\}`: fmt.Sprintf("unreachable: {every: 2s, probes: %d}", probes),
		`not_ready: \{.*\}`:   "not_ready: {first: 1s, more: 1s, probes: 3}",
	} {
		text = regexp.MustCompile(from).ReplaceAllString(text, to)
	}
	return text
}

// flash runs the runbook firmware with a bundle of version 2.0, and waits for its end.
func (h *house) flash(b *hosttest.Box, bundle string, args ...string) jobs.JobInfo {
	h.t.Helper()
	h.write("bundle", bundle)
	var done jobs.TaskInfo
	words := []string{"run", "firmware-quick", "--on", b.Name, "--arg-file", "bundle=" + h.file("bundle"),
		"--arg", "version=2.0", "--arg", "service=test -e /run/service", "--wait"}
	for _, a := range args {
		words = append(words, "--arg", a)
	}
	h.query(&done, words...)
	return h.jobs(done.Task)[0]
}

// wantEnd tells with what a job ended if not as wanted, and what the host said.
func (h *house) wantEnd(j jobs.JobInfo, outcome jobs.Outcome, class jobs.Class, words string) {
	h.t.Helper()
	out, _ := h.muster("logs", string(j.ID))
	if j.Outcome != outcome || j.Class != class || !strings.Contains(j.Error+out, words) {
		h.t.Errorf("it ended %s (%s): %s; want %s (%s) and %q. The host said:\n%s", j.Outcome, j.Class, j.Error,
			outcome, class, words, out)
	}
}

func running(b *hosttest.Box) string {
	b.AwaitReady()
	return strings.TrimSpace(b.Do(`. /etc/os-release; echo "$VERSION_ID"; head -n 1 /proc/cmdline`))
}

const (
	runsOld = "1.0\nconsole=ttyS0 rauc.slot=A"
	runsNew = "2.0\nconsole=ttyS0 rauc.slot=B"
)

func TestFirmwareIsInstalledBootedAndProven(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, b := newBox(t, 30)
	before := b.Slots()
	h.wantEnd(h.flash(b, b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, true)),
		jobs.Failed, jobs.ClassUser, "signature verification failed")
	if now := b.Slots(); now != before || b.Boots() != 1 {
		t.Errorf("a wrong signature changed\n%s\nto\n%s", before, now)
	}

	h.wantEnd(h.flash(b, b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, false)), jobs.Succeeded, "", "")
	if now := running(b); now != runsNew || b.Boots() != 2 {
		t.Errorf("after %d boots it runs %q", b.Boots(), now)
	}
	if tries := b.Do("cat /var/lib/bootloader/tries.B"); tries != "3\n" {
		t.Errorf("the new slot is not marked good: %s tries left", tries)
	}
	// The same again: nothing is to be done.
	h.wantEnd(h.flash(b, b.Bundle(hosttest.Image{Version: "2.0"}, hosttest.Model, false)), jobs.Succeeded, "", "")
	if b.Boots() != 2 {
		t.Errorf("it was booted %d times", b.Boots())
	}
}

// The boot loader gives up after three tries and takes the old slot.
func TestFirmwareThatDoesNotBootIsRolledBack(t *testing.T) {
	t.Parallel()
	goesBack(t, hosttest.Image{Version: "2.0", Dead: true}, jobs.ClassUser, "came back with slot A as before")
}

func TestFirmwareWithoutItsServiceIsRolledBack(t *testing.T) {
	t.Parallel()
	goesBack(t, hosttest.Image{Version: "2.0", Mute: true}, jobs.ClassTransient, "the service is not there")
}

func goesBack(t *testing.T, image hosttest.Image, class jobs.Class, words string) {
	if !hosttest.Inside(t) {
		return
	}
	h, b := newBox(t, 30)
	h.wantEnd(h.flash(b, b.Bundle(image, hosttest.Model, false)), jobs.RolledBack, class, words)
	if now := running(b); now != runsOld {
		t.Errorf("it runs %q", now)
	}
	if next := b.Do("cat /var/lib/bootloader/order"); next != "A B\n" {
		t.Errorf("the next boot tries %s", next)
	}
}

func TestFirmwareOfAHostThatIsAnotherOneIsNotCalledFine(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, b := newBox(t, 30)
	h.wantEnd(h.flash(b, b.Bundle(hosttest.Image{Version: "2.0", Other: true}, hosttest.Model, false)),
		jobs.Failed, jobs.ClassOperator, "host key")
	if now := running(b); now != runsNew {
		t.Errorf("it runs %q", now)
	}
}

func TestFirmwareOfAHostThatStaysAwayIsNotCalledFine(t *testing.T) {
	t.Parallel()
	if !hosttest.Inside(t) {
		return
	}
	h, b := newBox(t, 3, "group: pair1")
	j := h.flash(b, b.Bundle(hosttest.Image{Version: "2.0", Gone: true}, hosttest.Model, false))
	h.wantEnd(j, jobs.Unreachable, jobs.ClassOperator, "not back after")
	var groups []jobs.Group
	h.query(&groups, "group", "ls")
	if len(groups) != 1 || groups[0].Frozen == "" {
		t.Errorf("its group is %+v, want it frozen", groups)
	}
}
