package plan

import (
	"cmp"
	"slices"
	"time"

	"muster/jobs"
	"muster/windows"
)

// World is what a plan starts from.
type World struct {
	Now      time.Time
	Book     *windows.Book  // what is agreed of windows and freezes
	Slots    map[string]int // of the workers of each zone; a zone without any does nothing
	Limits   map[string]int // jobs at a time, of each limit that is not free
	Overload jobs.Overload
	Tasks    []Task
}

// Task is one of those that want to be done.
type Task struct {
	ID       jobs.TaskID // the new one may have none
	Operator string
	Weight   int // see jobs.Priority
	Work     windows.Work
	Jobs     []Job
}

// Job is a host's part of a task.
type Job struct {
	Zone   string
	Place  windows.Place
	Holds  []string      // what nobody else may have meanwhile: a group, limits
	Due    time.Time     // not before
	Takes  time.Duration // as it usually does
	Within time.Duration // as it must fit into a window: the p90; 0: Takes
	Busy   bool          // it runs now, and is Takes from its end
}

// Forecast is what will become of a task.
type Forecast struct {
	ID      jobs.TaskID
	Started time.Time // the first of its jobs begins; zero: none does
	Half    time.Time // half of them are done
	Done    time.Time // the last one that gets done is
	Jobs    []Fate    // in the order of the task
}

// Fate is what will become of a job.
type Fate struct {
	Start, End time.Time
	Opening    windows.Opening // in which it runs, if it needs one
	Never      string          // why it does not get done; empty: it does
}

// The reasons for which a job is not done that do not come from a window.
const (
	NoSlots = "no worker serves its zone"
	TooFar  = "its turn is not within what was looked at"
)

// opensMax is how many times a job is put off to the next opening before it is taken to
// be out of sight.
const opensMax = 60

// Run foretells the tasks, in their order.
func Run(w World) []Forecast {
	out := make([]Forecast, len(w.Tasks))
	zones := map[string]*zone{}
	for i, t := range w.Tasks {
		out[i] = Forecast{ID: t.ID, Jobs: make([]Fate, len(t.Jobs))}
		for k := range t.Jobs {
			name := t.Jobs[k].Zone
			z := zones[name]
			if z == nil {
				z = newZone(&w, name)
				zones[name] = z
			}
			z.add(i, &t.Jobs[k], &out[i].Jobs[k])
		}
	}
	for _, z := range zones {
		z.run()
	}
	for i := range out {
		out[i].sum()
	}
	return out
}

// sum finds when the task begins and ends.
func (f *Forecast) sum() {
	var ends []time.Time
	for _, j := range f.Jobs {
		if j.Never != "" {
			continue
		}
		ends = append(ends, j.End)
		if f.Started.IsZero() || j.Start.Before(f.Started) {
			f.Started = j.Start
		}
	}
	if len(ends) == 0 {
		return
	}
	slices.SortFunc(ends, time.Time.Compare)
	f.Half, f.Done = ends[(len(ends)-1)/2], ends[len(ends)-1]
}

// Need is how many slots a zone would need so that each job of a task gets done in the
// first opening in which it could be, and how many it has.
type Need struct {
	Zone  string
	Slots int // there are
	Want  int
}

// firstOpening is the first one from an instant on in which jobs of a class fit; none if there
// is no such opening.
func firstOpening(b *windows.Book, k class, from time.Time) windows.Opening {
	if v := b.Admit(k.place, from, k.work); !v.OK {
		from = v.Next
	}
	if from.IsZero() {
		return windows.Opening{}
	}
	o, _ := b.OpeningAt(k.place, from, k.work)
	return o
}

// Needs tells how many slots would be enough for a task, if it were alone: in each of
// its openings a slot does one job after the other.
func Needs(w World, t Task) []Need {
	type slotted struct {
		zone  string
		start time.Time
		end   time.Time
	}
	jobsIn, takes := map[slotted]int{}, map[slotted]time.Duration{}
	first := map[class]slotted{}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		k := classOf(&w, 0, t.Work, j)
		at, known := first[k]
		if !known {
			at = slotted{zone: j.Zone}
			if t.Work.Window {
				o := firstOpening(w.Book, k, later(w.Now, j.Due))
				at.start, at.end = o.Start, o.End
			}
			first[k] = at
		}
		if t.Work.Window && at.end.IsZero() {
			continue // it has none
		}
		jobsIn[at]++
		takes[at] = max(takes[at], k.work.Estimate)
	}
	want := map[string]int{}
	for at, n := range jobsIn {
		rounds := 1
		if from := later(at.start, w.Now); !at.end.IsZero() && takes[at] > 0 {
			rounds = max(int((at.end.Sub(from)-t.Work.Reserve)/takes[at]), 1)
		}
		if at.end.IsZero() {
			continue // it is in no hurry
		}
		want[at.zone] = max(want[at.zone], (n+rounds-1)/rounds)
	}
	var out []Need
	for zone, n := range want {
		out = append(out, Need{Zone: zone, Slots: w.Slots[zone], Want: n})
	}
	slices.SortFunc(out, func(a, b Need) int { return cmp.Compare(a.Zone, b.Zone) })
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
