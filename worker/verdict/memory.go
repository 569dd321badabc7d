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
	MayHaveRun bool              `json:"may_have_run,omitempty"` // an attempt may have started the step, and nobody knows
	Asked      int               `json:"asked,omitempty"`        // the attempts that left the question to the host to the next one
	Over       jobs.Micros       `json:"over,omitempty"`         // the time from which a step that may have run is surely over
	Again      int               `json:"again,omitempty"`        // the failed tries of the step
	Probe      *Probing          `json:"probe,omitempty"`        // the state of a step that spans several attempts
	Saved      map[string]string `json:"saved,omitempty"`        // the values that earlier steps saved
	Failed     *Failure          `json:"failed,omitempty"`       // why on_fail runs
	Disturbed  bool              `json:"disturbed,omitempty"`    // a step began that may disturb the host
	Why        string            `json:"why,omitempty"`          // why the job did not begin, for people; see jobs.Saying
	Marked     jobs.Token        `json:"marked,omitempty"`       // the token of the attempt that last wrote the markers of the group
	Lost       string            `json:"lost,omitempty"`         // why the host could not keep all output of a step

	Told bool `json:"-"` // this attempt sent a memory to the queue with a checkpoint
}

// String returns the stored form of m; empty if m is empty.
func (m Memory) String() string {
	b, err := json.Marshal(m)
	if err != nil || string(b) == "{}" {
		return ""
	}
	return string(b)
}

// Replacing returns the stored form with which m replaces the one before, and the one that a
// checkpoint has sent since, whether its reply came or not. An empty form would not replace it.
func (m Memory) Replacing(before string) string {
	if text := m.String(); text != "" || before == "" && !m.Told {
		return text
	}
	return ToldQueue
}

// ToldQueue is the form of an empty memory that must replace what a checkpoint has sent.
const ToldQueue = "{}"

// Recall reads the stored form; if it cannot be read, the memory is empty.
func Recall(saved string) Memory {
	var m Memory
	if json.Unmarshal([]byte(saved), &m) != nil {
		return Memory{}
	}
	return m
}

// Remembered reports whether an attempt may have started the step, by the stored form of its
// memory.
func Remembered(saved string) bool { return Recall(saved).MayHaveRun }

// Next clears the fields that belong to a step that is over.
func (m *Memory) Next() {
	m.MayHaveRun, m.Asked, m.Over, m.Again, m.Probe = false, 0, 0, 0, nil
}

// Keep adds the values that a step saved. It makes a new map, because copies may share the old one.
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

// kept returns the memory in its stored form, for the next attempt.
func (f Evidence) kept() string { return f.Memory.Replacing(f.Grant.Saved) }

// Probed returns the state of the probes of the step in hand.
func (f Evidence) Probed() Probing { return f.Memory.Probed() }

// Probed returns the state of the probes of the step in hand.
func (m Memory) Probed() Probing {
	if m.Probe == nil {
		return Probing{}
	}
	return *m.Probe
}

// Unfinished reports whether the job is half way: a step has disturbed its host, or on_fail is
// undoing such a step.
func (m Memory) Unfinished() bool { return m.Disturbed || m.Failed != nil }

// remember returns the stored form of the memory of a step that may have run.
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
