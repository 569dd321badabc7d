package plan

import (
	"cmp"
	"slices"
	"time"

	"muster/jobs"
	"muster/windows"
)

// World is the state from which a plan starts.
type World struct {
	Now      time.Time
	Book     *windows.Book  // the windows and freezes in force
	Slots    map[string]int // slots of the workers of each zone; a zone without slots does nothing
	Limits   map[string]int // how many jobs may hold each limit that is in force
	Overload jobs.Overload
	Tasks    []Task
}

// Task is a task to be predicted.
type Task struct {
	ID       jobs.TaskID // empty for the new one
	Operator string
	Weight   int // see jobs.Priority
	Work     windows.Work
	Jobs     []Job         // those of the first wave first
	Waves    []int         // sizes of the waves that have not ended; none: all jobs at once
	Soak     time.Duration // the pause after a wave
	Turn     Turn          // its place in its lane
}

// Job is the part of a task for one host.
type Job struct {
	Zone   string
	Place  windows.Place
	Holds  []string      // the group and the limits that it holds while it runs
	Due    time.Time     // it does not start before
	Takes  time.Duration // usual duration
	Within time.Duration // duration that must fit into a window: the p90; 0: Takes
	Busy   bool          // it runs now, and ends after Takes
}

// Forecast is the prediction for a task.
type Forecast struct {
	ID      jobs.TaskID
	Started time.Time // start of its first job; zero: none starts
	Half    time.Time // when half of its jobs are done
	Done    time.Time // when the last job that gets done is done
	Jobs    []Fate    // in the order of the task
}

// Fate is the prediction for a job.
type Fate struct {
	Start, End time.Time
	Opening    windows.Opening // the opening in which it runs, if it needs one
	Never      string          // why it is never done; empty: it is done
}

// The reasons for jobs that are never done, beside those of windows.
const (
	NoSlots = "no worker serves its zone"
	TooFar  = "its turn is not within what was looked at"
)

// opensMax bounds how often a job is moved to the next opening, before it counts as out of sight.
const opensMax = 60

// run predicts the tasks as if those of their jobs that are given were free to begin.
func run(w World) []Forecast {
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

// sum computes when the task begins and ends.
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

// Need is the number of slots that a zone needs so that each job of a task is done in its first
// possible opening, and the number that it has.
type Need struct {
	Zone  string
	Slots int // the present number of slots
	Want  int
}

// firstOpening returns the first opening from an instant on in which jobs of a class fit; the zero
// Opening if there is none.
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

// Needs returns the slots that would be enough for a task if it were alone: in each of its
// openings a slot does one job after the other.
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
			continue // there is no opening for it
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
			continue // it has no deadline
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
