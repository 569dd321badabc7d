package events

import (
	"slices"
	"testing"
)

// The key of a firing tells events and triggers apart, and is the same whenever it is made.
func TestTheKeyOfAFiringIsTheSameAgain(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, event := range []string{"0wcy7y2fb2", "0wcy7y2fb3"} {
		for _, trigger := range []string{"rules", "rules-acme"} {
			key := Key(event, trigger)
			if other, taken := seen[key]; taken {
				t.Errorf("%s of %s has the key %s of %s", trigger, event, key, other)
			}
			if seen[key] = trigger + " of " + event; Key(event, trigger) != key {
				t.Errorf("the key of %s and %s changed", event, trigger)
			}
		}
	}
}

func TestAnOutcomeNamesEachTaskOnce(t *testing.T) {
	t.Parallel()
	o := Outcome{Firings: []Firing{{Trigger: "a", Task: "t1"}, {Trigger: "b", Why: "no host"},
		{Trigger: "c", Task: "t2"}, {Trigger: "d", Task: "t1"}}}
	if got, want := o.Tasks(), []string{"t1", "t2"}; !slices.Equal(got, want) {
		t.Errorf("tasks %q, want %q", got, want)
	}
}
