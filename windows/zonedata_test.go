package windows

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The machine's database has the data of Tokyo under the name of Zurich, and the standard library
// believes it.
func TestTheMachinesZonesDoNotCount(t *testing.T) {
	if os.Getenv("MUSTER_TEST_ZONES") == "" {
		dir := t.TempDir()
		files, err := zoneFiles()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "Europe"), 0o700); err != nil {
			t.Fatal(err)
		}
		tokyo, err := readAll(files, "Asia/Tokyo")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "Europe", "Zurich"), tokyo, 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), "ZONEINFO="+dir, "MUSTER_TEST_ZONES=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	const tokyo, zurich = 9 * 3600, 3600
	winter := instant(t, "2026-11-22T00:00:00Z")
	lied, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	if _, offset := winter.In(lied).Zone(); offset != tokyo {
		t.Fatalf("the standard library says %d: this test shows nothing", offset)
	}
	if got := zone(t, "Europe/Zurich").at(winter.Unix()).offset; got != zurich {
		t.Errorf("Zurich is %d s off UTC, want %d", got, zurich)
	}
}

// Operators compare nodes by this version, so other data must have another version.
func TestTheVersionOfTheZonesIsThatOfTheirData(t *testing.T) {
	t.Parallel()
	sums := map[string]string{
		"2025c": "8f55634d05f8bca1f7bc7c69c5933428c69357e0bdf565e5ba224e3f88ff12e8",
	}
	sum := sha256.Sum256(zoneData)
	if got := hex.EncodeToString(sum[:]); got != sums[ZoneData] {
		t.Errorf("zoneinfo.zip is %s, and %s is %q", got, ZoneData, sums[ZoneData])
	}
	for _, name := range []string{"Europe", "Europe/", "../Europe/Zurich", "America/Indiana", "europe/zurich "} {
		if _, err := LoadZone(name); err == nil {
			t.Errorf("%q is a zone", name)
		}
	}
}
