package owners_test

import (
	"testing"

	"muster/internal/proc"
	"muster/master/owners"
)

func TestTheTextOfASlotIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"":                 {"", ""},
		"default":          {"default", ""},
		"default take ABC": {"default", "ABC"},
		"take":             {"take", ""},
	} {
		h := proc.Holder{PID: 1, Text: text}
		if got := [2]string{owners.Zone(h), owners.Take(h)}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for name, want := range map[string]bool{"1": true, "12": true, "0": false, "01": false, "+1": false, "x": false} {
		if owners.IsSlot(name) != want {
			t.Errorf("IsSlot(%q) = %v", name, !want)
		}
	}
}
