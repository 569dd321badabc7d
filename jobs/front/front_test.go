package front

import (
	"testing"

	"muster/jobs"
)

// The front gives a task with few jobs its turns beside one with thousands, and says so in words.
func TestASmallTaskStandsAtTheFrontBesideABigOne(t *testing.T) {
	t.Parallel()
	shares := []jobs.Share{{Task: "big", Operator: "alice", Priority: jobs.PriorityNormal, Waiting: 3000},
		{Task: "small", Operator: "bob", Priority: jobs.PriorityNormal, Waiting: 4}, {Task: "runs", Running: 7}}
	at := Of(shares, 20)
	if len(at) != 20 {
		t.Fatalf("%d places", len(at))
	}
	small := 0
	for i, id := range at {
		if id == "small" {
			small++
			if i >= 8 {
				t.Errorf("a job of the small task is at place %d: %v", i, at)
			}
		}
	}
	if small != 4 {
		t.Errorf("the small task has %d of its 4 places: %v", small, at)
	}
	if words := Words(shares, at); words != "the next 20 places: 16 of task big of alice, 4 of task small of bob" {
		t.Errorf("%q", words)
	}
	if words := Words(shares, Of(shares[2:], 20)); words != "" {
		t.Errorf("an empty front: %q", words)
	}
}
