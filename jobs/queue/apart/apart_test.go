package apart_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/jobs/queue/apart"
	"muster/jobs/queue/keys"
)

// The slots are those that `CLUSTER KEYSLOT {NAME}` of Redis says.
func TestASlotIsThatOfACluster(t *testing.T) {
	t.Parallel()
	for zone, want := range map[string]int{"hub": 2434, "default": 5718, "zrh": 7260, "123456789": 12739, "foo": 12182} {
		if got := apart.Slot(zone); got != want {
			t.Errorf("slot of %s: %d, want %d", zone, got, want)
		}
	}
}

// serverOf finds the server of a slot.
func serverOf(t interface{ Fatalf(string, ...any) }, hub string, zones map[string]string, slot int) string {
	found := ""
	for _, s := range apart.Slots(hub, zones) {
		if s.Start <= slot && slot <= s.End {
			if found != "" || len(s.Nodes) != 1 {
				t.Fatalf("slot %d has more than one server", slot)
			}
			found = s.Nodes[0].Addr
		}
	}
	return found
}

func TestEachSlotHasOneServer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zones := rapid.MapOf(rapid.StringMatching(`[a-z]{1,4}`),
			rapid.SampledFrom([]string{"redis://a:1", "redis://b:1", "redis://hub:1"})).Draw(t, "zones")
		if apart.Check("redis://hub:1", zones) != nil {
			return // two want the same slot
		}
		for zone, server := range zones {
			if got := serverOf(t, "redis://hub:1", zones, apart.Slot(zone)); got != server {
				t.Fatalf("zone %s is on %s, want %s", zone, got, server)
			}
		}
		for _, slot := range []int{0, 16383, apart.Slot(keys.HubZone), rapid.IntRange(0, 16383).Draw(t, "slot")} {
			if got := serverOf(t, "redis://hub:1", zones, slot); got == "" {
				t.Fatalf("slot %d has no server", slot)
			}
		}
		if got := serverOf(t, "redis://hub:1", zones, apart.Slot(keys.HubZone)); got != "redis://hub:1" {
			t.Fatalf("the hub is on %s", got)
		}
	})
}

// twins returns two names with the same slot.
func twins(t *testing.T, with string) (name string) {
	t.Helper()
	for i := range 1 << 20 {
		name = "z" + strings.Map(func(r rune) rune { return 'a' + (r - '0') }, itoa(i))
		if name != with && apart.Slot(name) == apart.Slot(with) {
			return name
		}
	}
	t.Fatal("no other name has the slot of " + with)
	return ""
}

func itoa(i int) string {
	digits := ""
	for ; i > 0 || digits == ""; i /= 10 {
		digits = string(rune('0'+i%10)) + digits
	}
	return digits
}

func TestTwoZonesOfASlotHaveOneServer(t *testing.T) {
	t.Parallel()
	other, hubs := twins(t, "zrh"), twins(t, keys.HubZone)
	for _, c := range []struct {
		zones map[string]string
		want  string
	}{
		{map[string]string{"zrh": "a", other: "b"}, "have the same slot"},
		{map[string]string{"zrh": "a", other: "a"}, ""},
		{map[string]string{hubs: "a"}, "the slot of the hub"},
		{map[string]string{hubs: "hub"}, ""},
		{map[string]string{"zrh": "a", "sin": "b"}, ""},
	} {
		err := errors.Join(apart.Check("hub", c.zones)...)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.zones, err, c.want)
		}
	}
}

func TestANameHasNoPassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://u:p@ss@h:1/2": "redis://h:1/2", "unix:///run/r.sock": "unix:///run/r.sock",
		"unix:///run/a@x.sock": "unix:///run/a@x.sock", "unix://u:p@/run/a@x.sock": "unix:///run/a@x.sock",
		"rediss://h:1": "rediss://h:1"} {
		if got := apart.Name(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
