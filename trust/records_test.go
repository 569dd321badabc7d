package trust

import (
	"sync"
	"testing"

	"muster/fleet"
)

// A record that is remembered is that of the same version of the inventory, whoever asks, and
// however many at once.
func TestRecordsAreThoseOfTheirVersion(t *testing.T) {
	t.Parallel()
	var known Records
	before, after := hostNamed("fw1"), hostNamed("fw1")
	after.Port = 2222
	hosts := map[string]fleet.Host{"v1": before, "v2": after, "": before}
	want := map[string]string{}
	for version, h := range hosts {
		record, err := RecordOf(h)
		if err != nil {
			t.Fatal(err)
		}
		want[version] = record
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				for version, h := range hosts {
					if got, err := known.Of(version)(h); err != nil || got != want[version] {
						t.Errorf("version %q: %q, %v, want %q", version, got, err, want[version])
					}
				}
			}
		})
	}
	all.Wait()
	// The second question is not hashed again: whoever changes a host without a new version of the
	// inventory is not heard.
	first, _ := known.Of("v3")(before)
	if again, _ := known.Of("v3")(after); again != first {
		t.Errorf("the record was computed again: %q, then %q", first, again)
	}
	var none *Records
	if got, err := none.Of("v1")(after); err != nil || got != want["v2"] {
		t.Errorf("without a memory: %q, %v", got, err)
	}
}
