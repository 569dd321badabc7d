package worker

import (
	"encoding/json"
	"maps"

	"muster/jobs"
)

// memory is what attempts keep for those after them, in the queue. What belongs to one
// step is forgotten when the next one begins.
type memory struct {
	MayHaveRun bool              `json:"may_have_run,omitempty"` // an attempt may have started its step, and it is not known
	Asked      int               `json:"asked,omitempty"`        // so many attempts hoped that the host would tell the next one
	Over       jobs.Micros       `json:"over,omitempty"`         // the step that may have run is not at work any more from then on
	Again      int               `json:"again,omitempty"`        // so many tries of the step have failed
	Probe      *probing          `json:"probe,omitempty"`        // of a step that gives the worker back
	Saved      map[string]string `json:"saved,omitempty"`        // by steps before
	Failed     *failure          `json:"failed,omitempty"`       // why on_fail runs
	Disturbed  bool              `json:"disturbed,omitempty"`    // a step that may disturb the host was begun
	Why        string            `json:"why,omitempty"`          // it did not begin, for people; see jobs.Saying
	Marked     jobs.Token        `json:"marked,omitempty"`       // of the attempt that wrote the markers of the group last
	Lost       string            `json:"lost,omitempty"`         // why a step's host could not keep all that it said

	told bool // this attempt told the queue of something to keep with a question
}

// failure is how the job would have ended if its step had no on_fail.
type failure struct {
	Step    int          `json:"step"`
	Outcome jobs.Outcome `json:"outcome"`
	Class   jobs.Class   `json:"class,omitempty"`
	Exit    *int         `json:"exit,omitempty"`
	Error   string       `json:"error,omitempty"`
	Keep    bool         `json:"keep,omitempty"` // something may still act on the host
}

// String is the form that is kept; empty if there is nothing to keep.
func (m memory) String() string {
	b, err := json.Marshal(m)
	if err != nil || string(b) == "{}" {
		return ""
	}
	return string(b)
}

// over is the form in which m takes the place of what was kept before, or was told to the
// queue since, whether its answer came or not: nothing would leave that there.
func (m memory) over(before string) string {
	if text := m.String(); text != "" || before == "" && !m.told {
		return text
	}
	return toldQueue
}

// toldQueue stands for what the queue was told with a question of this attempt: also nothing
// has to take the place of that.
const toldQueue = "{}"

// recall reads the form that is kept.
func recall(saved string) memory {
	var m memory
	if json.Unmarshal([]byte(saved), &m) != nil {
		return memory{}
	}
	return m
}

func remembered(saved string) bool { return recall(saved).MayHaveRun }

// next forgets what belongs to a step that is over.
func (m *memory) next() {
	m.MayHaveRun, m.Asked, m.Over, m.Again, m.Probe = false, 0, 0, 0, nil
}

// keep takes what a step saved. The map is never changed: others may hold it.
func (m *memory) keep(saved map[string]string) {
	if len(saved) == 0 {
		return
	}
	all := maps.Clone(m.Saved)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, saved)
	m.Saved = all
}

// mind is a copy of what is kept.
func (f facts) mind() memory {
	if f.memory == nil {
		return recall(f.grant.Saved)
	}
	return *f.memory
}

// kept is what is kept, as text.
func (f facts) kept() string {
	if f.memory == nil {
		return f.grant.Saved
	}
	return f.memory.over(f.grant.Saved)
}

// remember is what is kept of a step that may have run.
func (f facts) remember() string {
	m := f.mind()
	m.MayHaveRun = true
	return m.String()
}
