package verdict

import (
	"encoding/json"
	"maps"
	"time"

	"muster/jobs"
)

// Memory holds what an attempt keeps in the queue for the next one. Next clears what belongs to
// one step. The probe and the map are never changed in place, so that a copy stays as it is.
type Memory struct {
	MayHaveRun bool              `json:"may_have_run,omitempty"` // an attempt may have started its step, and it is not known
	Asked      int               `json:"asked,omitempty"`        // so many attempts hoped that the host would tell the next one
	Over       jobs.Micros       `json:"over,omitempty"`         // the step that may have run is not at work any more from then on
	Again      int               `json:"again,omitempty"`        // so many tries of the step have failed
	Probe      *Probing          `json:"probe,omitempty"`        // of a step that gives the worker back
	Saved      map[string]string `json:"saved,omitempty"`        // by steps before
	Failed     *Failure          `json:"failed,omitempty"`       // why on_fail runs
	Disturbed  bool              `json:"disturbed,omitempty"`    // a step that may disturb the host was begun
	Why        string            `json:"why,omitempty"`          // it did not begin, for people; see jobs.Saying
	Marked     jobs.Token        `json:"marked,omitempty"`       // of the attempt that wrote the markers of the group last
	Lost       string            `json:"lost,omitempty"`         // why a step's host could not keep all that it said

	Told bool `json:"-"` // this attempt told the queue of something to keep with a question
}

// String returns the form that is kept; empty if there is nothing to keep.
func (m Memory) String() string {
	b, err := json.Marshal(m)
	if err != nil || string(b) == "{}" {
		return ""
	}
	return string(b)
}

// Replacing returns the form in which m replaces what was kept before or was sent with a
// checkpoint since, whether the reply came or not. An empty form would leave that there.
func (m Memory) Replacing(before string) string {
	if text := m.String(); text != "" || before == "" && !m.Told {
		return text
	}
	return ToldQueue
}

// ToldQueue is the form of an empty memory that must replace what a checkpoint has sent.
const ToldQueue = "{}"

// Recall reads the form that is kept; what cannot be read is an empty memory.
func Recall(saved string) Memory {
	var m Memory
	if json.Unmarshal([]byte(saved), &m) != nil {
		return Memory{}
	}
	return m
}

// Remembered reports whether an attempt may have started the step, by the form that is kept.
func Remembered(saved string) bool { return Recall(saved).MayHaveRun }

// Next clears what belongs to a step that is over.
func (m *Memory) Next() {
	m.MayHaveRun, m.Asked, m.Over, m.Again, m.Probe = false, 0, 0, 0, nil
}

// Keep adds what a step saved. It makes a new map, because others may hold the old one.
func (m *Memory) Keep(saved map[string]string) {
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

// kept returns the form in which the queue keeps what the next attempt needs.
func (f Evidence) kept() string { return f.Memory.Replacing(f.Grant.Saved) }

// Probed returns what is kept about the probes of the step in hand.
func (f Evidence) Probed() Probing { return f.Memory.Probed() }

// Probed returns what is kept about the probes of the step in hand.
func (m Memory) Probed() Probing {
	if m.Probe == nil {
		return Probing{}
	}
	return *m.Probe
}

// Unfinished reports whether the job is half way: a step that disturbs its host has ended, or
// on_fail is undoing one.
func (m Memory) Unfinished() bool { return m.Disturbed || m.Failed != nil }

// remember returns the form that is kept about a step that may have run.
func (f Evidence) remember() string {
	m := f.Memory
	m.MayHaveRun = true
	return m.String()
}

// Appoint returns a result that frees the worker until the next probe of the step. The job keeps
// its host.
func (f Evidence) Appoint(k jobs.Kind, c Probing, delay time.Duration, text string) jobs.Result {
	f.Memory.Probe = &c
	f.Memory.MayHaveRun, f.Memory.Asked = false, 0
	r := f.say(k, f.Place()+text)
	r.Delay, r.Step = max(delay, 0), f.Step
	return r
}
