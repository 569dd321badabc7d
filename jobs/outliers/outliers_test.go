package outliers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/jobs"
)

func count(task, node string, all, failed int) Count {
	return Count{Work{jobs.TaskID(task), "eu", "acme", "firewall"}, node, all, failed}
}

// of makes a count one of a customer.
func of(customer string, c Count) Count {
	c.Customer = customer
	return c
}

// A node is an outlier by comparison within each task alone.
func TestFind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		counts []Count
		want   string // node failed/jobs expected
	}{
		"nothing":         {nil, ""},
		"alone":           {[]Count{count("a", "n1", 100, 100)}, ""},
		"all alike":       {[]Count{count("a", "n1", 50, 25), count("a", "n2", 50, 25)}, ""},
		"one fails":       {[]Count{count("a", "n1", 50, 40), count("a", "n2", 48, 0)}, "n1 40/50 1.0"},
		"few jobs":        {[]Count{count("a", "n1", 19, 19), count("a", "n2", 98, 0)}, ""},
		"few failures":    {[]Count{count("a", "n1", 50, 9), count("a", "n2", 98, 0)}, ""},
		"not often":       {[]Count{count("a", "n1", 50, 15), count("a", "n2", 48, 3)}, ""},
		"often enough":    {[]Count{count("a", "n1", 50, 16), count("a", "n2", 48, 3)}, "n1 16/50 4.0"},
		"few of the rest": {[]Count{count("a", "n1", 30, 30), count("a", "n2", 1, 0)}, ""},
		// A bad task that one node did nearly all of says nothing about this node.
		"a bad task": {[]Count{count("a", "n1", 60, 60), count("a", "n2", 3, 3), count("b", "n1", 40, 0),
			count("b", "n2", 40, 0)}, ""},
		"a task of its own": {[]Count{count("a", "n1", 60, 60), count("b", "n2", 60, 0)}, ""},
		"over several tasks": {[]Count{count("a", "n1", 10, 6), count("a", "n2", 38, 0), count("b", "n1", 10, 6),
			count("b", "n2", 38, 0)}, "n1 12/20 0.5"},
		"two, worst first": {[]Count{count("a", "n1", 50, 20), count("a", "n2", 50, 30), count("a", "n3", 998, 0)},
			"n2 30/50 1.0, n1 20/50 1.5"},
		// The hosts of one customer fail for n1 alone, perhaps on purpose.
		"one customer of two": {[]Count{of("acme", count("a", "n1", 50, 50)), of("acme", count("a", "n2", 50, 0)),
			of("bolt", count("b", "n1", 50, 0)), of("bolt", count("b", "n2", 50, 0))}, ""},
		"both customers": {[]Count{of("acme", count("a", "n1", 50, 50)), of("acme", count("a", "n2", 48, 0)),
			of("bolt", count("b", "n1", 50, 40)), of("bolt", count("b", "n2", 48, 0))}, "n1 90/100 2.0"},
		// All hosts of a customer that is down were together, so one node got them.
		"a block of a customer": {[]Count{of("acme", count("a", "n1", 40, 40)), of("bolt", count("a", "n2", 60, 0))}, ""},
	} {
		var got []string
		for _, o := range Find(4, c.counts) {
			got = append(got, fmt.Sprintf("%s %d/%d %.1f", o.Node, o.Failed, o.Jobs, o.Expected))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// A zone never loses its last node, and never more than one.
func TestChoose(t *testing.T) {
	t.Parallel()
	node := func(id string, zones ...string) jobs.Node {
		return jobs.Node{ID: id, State: "running", Zones: zones}
	}
	aside := node("x", "a")
	paused, starved, gone, draining := aside, aside, aside, aside
	aside.Paused = &jobs.Pause{Note: Outlier{Node: "x"}.Note()}
	paused.Paused = &jobs.Pause{Note: "paused by alice: cables"}
	starved.Governor = &jobs.Governor{Starved: true}
	gone.State, draining.State = jobs.NodeGone, jobs.NodeDraining
	standby := node("n2", "a")
	standby.Standby = []string{"a"}
	self := node("n1", "a")
	resting := node("n1", "a")
	resting.Paused = paused.Paused
	list := []Outlier{{Node: "n1", Runbook: "r", Jobs: 20, Failed: 20}}
	for name, c := range map[string]struct {
		nodes []jobs.Node
		aside bool
		kept  string
	}{
		"another one":        {[]jobs.Node{self, node("n2", "a")}, true, ""},
		"alone":              {[]jobs.Node{self}, false, "no other node of zone a takes jobs"},
		"one is aside":       {[]jobs.Node{self, node("n2", "a"), aside}, false, "node x is set aside in zone a already"},
		"the other is aside": {[]jobs.Node{self, aside}, false, "node x is set aside"},
		"one that stands in": {[]jobs.Node{self, standby}, false, "no other node of zone a"},
		"paused":             {[]jobs.Node{self, paused}, false, "no other node"},
		"starved":            {[]jobs.Node{self, starved}, false, "no other node"},
		"gone":               {[]jobs.Node{self, gone}, false, "no other node"},
		"draining":           {[]jobs.Node{self, draining}, false, "no other node"},
		"elsewhere":          {[]jobs.Node{self, node("n2", "b")}, false, "no other node"},
		"one of two zones":   {[]jobs.Node{node("n1", "a", "b"), node("n2", "a")}, false, "node of zone b takes"},
		"it is paused":       {[]jobs.Node{resting, node("n2", "a")}, false, ""},
		"it has left":        {[]jobs.Node{node("n2", "a")}, false, ""},
	} {
		got, kept := Choose(list, c.nodes)
		if (got != nil) != c.aside || (len(kept) > 0) != (c.kept != "") ||
			!strings.Contains(strings.Join(kept, ""), c.kept) {
			t.Errorf("%s: %+v, %q", name, got, kept)
		}
	}
	two := append(slices.Clone(list), Outlier{Node: "n2", Jobs: 20, Failed: 20})
	if got, _ := Choose(two, []jobs.Node{self, node("n2", "a"), node("n3", "a")}); got == nil || got.Node != "n1" {
		t.Errorf("of two: %+v", got)
	}
}

// Jobs that did not run count for nobody.
func TestBad(t *testing.T) {
	t.Parallel()
	counted, failed := 0, 0
	for _, o := range jobs.Outcomes() {
		bad, counts := Bad(o)
		if bad && !counts {
			t.Errorf("%s fails and does not count", o)
		}
		if counts {
			counted++
		}
		if bad {
			failed++
		}
	}
	if counted != 6 || failed != 5 {
		t.Errorf("%d outcomes count, %d as failed", counted, failed)
	}
}

func TestAPolicyIsChecked(t *testing.T) {
	t.Parallel()
	for _, good := range []Policy{{0, DefaultTimes}, {time.Hour, 2}} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	err := Policy{time.Minute, 1}.Validate()
	if err == nil || !strings.Contains(err.Error(), "window = 1m0s: want") ||
		!strings.Contains(err.Error(), "times = 1: want") {
		t.Errorf("got %v", err)
	}
}
