package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/testkit/hosttest"
)

// On a machine without a time zone database, of the system or of Go, windows open at the same times
// as elsewhere, even in the nights in which the clocks change.
func TestNoZoneinfoIsNeeded(t *testing.T) {
	if !hosttest.Inside(t) {
		return
	}
	t.Setenv("ZONEINFO", "/nowhere/zoneinfo.zip")
	t.Setenv("GOROOT", "")
	t.Setenv("TZ", "America/New_York")
	hidden := []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"}
	if root, err := exec.Command("go", "env", "GOROOT").Output(); err == nil {
		hidden = append(hidden, filepath.Join(strings.TrimSpace(string(root)), "lib/time"))
	}
	for _, dir := range hidden {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if out, err := exec.Command("mount", "-t", "tmpfs", "none", dir).CombinedOutput(); err != nil {
			t.Fatalf("mount on %s: %v: %s", dir, err, out)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Fatalf("%s is not hidden: %d files, %v", dir, len(left), err)
		}
	}

	_, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newHouse(t, strings.Replace(inventory, "customer: ", "customer: acme # ", 1))
	h.write("windows.yaml", `windows:
  - {name: night, customer: acme, zone: Europe/Zurich, start: "0 2 * * SUN", end: "04:00", approval: none}
`)
	if out, code := h.muster("windows", "apply", h.file("windows.yaml")); code != 0 {
		t.Fatalf("apply: exit %d: %s", code, out)
	}
	for _, night := range []struct{ from, utc, place, here, open string }{
		{"2027-03-20T00:00:00Z", "2027-03-21 01:00:00Z", "02:00:00 +01:00", "2027-03-20 21:00 -04:00", "2h"},
		{"2027-03-27T00:00:00Z", "2027-03-28 01:00:00Z", "03:00:00 +02:00", "2027-03-27 21:00 -04:00", "1h"},
		{"2027-10-30T00:00:00Z", "2027-10-31 00:00:00Z", "02:00:00 +02:00", "2027-10-30 20:00 -04:00", "3h"},
	} {
		out, code := h.muster("windows", "next", "fw0001", "--count", "1", "--from", night.from)
		for _, want := range []string{night.utc, night.place, night.here, night.open} {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("from %s: exit %d, it lacks %q:\n%s", night.from, code, want, out)
			}
		}
	}
	// This process has no other database: a zone that is not embedded would be missing.
	if _, err := time.LoadLocation("Asia/Kathmandu"); err != nil {
		t.Error(err)
	}
}
