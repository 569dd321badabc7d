package master

import (
	"testing"
	"time"
)

// The first child that gets the order to make room may have a job of hours.
func TestALongJobDoesNotKeepAnotherZoneFromItsTurn(t *testing.T) {
	t.Parallel()
	r := start(t, func(r *rig) {
		r.cfg.Zones = []string{"a", "b"}
		r.cfg.Children = 3
		r.cfg.Turn = 10 * time.Millisecond
	})
	first := r.put("a", hosts("hold", 9)...)
	r.works(t, first[:3]...)
	other := r.put("b", "ok")
	r.until(t, "all were told to make room, one after the other", func() bool { return r.drains == 3 })
	r.release(first[1])
	r.ends(t, first[1], other[0])
	r.release(first...)
	r.ends(t, first...)
}

func TestWhoMakesRoom(t *testing.T) {
	t.Parallel()
	served := func(zone string, deadline time.Duration, drained bool) *slot {
		return &slot{zone: zone, child: &child{deadline: deadline, drained: drained}}
	}
	for name, test := range map[string]struct {
		slots []*slot
		want  int // number of the slot; 0: none
	}{
		"nobody":                    {nil, 0},
		"all were asked":            {[]*slot{served("a", 1, true)}, 0},
		"no child":                  {[]*slot{{zone: "a", orphan: &orphan{}}, {zone: "a", call: &call{}}}, 0},
		"of the zone with most":     {[]*slot{served("b", 1, false), served("a", 5, false), served("a", 9, false)}, 2},
		"over first":                {[]*slot{served("a", 5, false), served("a", 3, false), served("a", 4, false)}, 2},
		"not those that were asked": {[]*slot{served("a", 5, true), served("a", 6, true), served("b", 7, false)}, 3},
		"without a job":             {[]*slot{served("a", 5, false), served("a", 0, false)}, 2},
	} {
		used := slots{}
		for i, s := range test.slots {
			s.name = string(rune('1' + i))
			used[s.name] = s
		}
		got := ""
		if s := used.mostServed(); s != nil {
			got = s.name
		}
		want := ""
		if test.want > 0 {
			want = string(rune('0' + test.want))
		}
		if got != want {
			t.Errorf("%s: slot %q, want %q", name, got, want)
		}
	}
}

// An idle node asks for jobs again and again and gets none: the hub need not hear of that.
func TestATakeOfNothingIsNotShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := testConfig("muster", t.TempDir(), "")
	m, err := New(cfg, w, w, silent())
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(m)
	n.zones[0].Known = true
	s, err := n.freeSlot("default")
	if err != nil {
		t.Fatal(err)
	}
	n.take(s)
	(<-n.work.Events)() // the answer
	if len(n.slots) > 0 || len(w.takes) != 1 || n.zones[0].Looked == 0 {
		t.Fatalf("slots %v, %d takes, looked %s: want one take that is answered", n.slots, len(w.takes), n.zones[0].Looked)
	}
	if n.face.changed {
		t.Error("the hub is told of a change, but nothing of the node's record has changed")
	}
	n.work.Cancel()
	n.work.Finish()
}
