package read

import (
	"context"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/trust"
)

// An Ending is how a job ended, with what its node said of that.
type Ending struct {
	Job jobs.JobInfo
	// Said is the testimony of the node that the proof is of. Without a proof there was none, or
	// somebody took it away.
	Said  trust.Testimony
	Proof string
	// ByQueue reports whether the queue ends jobs in that way by itself, without the word of a node.
	ByQueue bool
}

// crashesMost is the number of workers that a job takes with it before the queue ends it; lose.lua
// has the same number.
const crashesMost = 3

// Endings reads how jobs ended.
type Endings struct{ tasks *Tasks }

// NewEndings returns the endings of the jobs of some tasks.
func NewEndings(t *Tasks) *Endings { return &Endings{t} }

// Endings returns some jobs of a task in one zone, in the order of the ids; the State of those that
// have not ended says so.
func (q *Endings) Endings(ctx context.Context, zone string, ids []jobs.ID) ([]Ending, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	hosts := make([]string, len(ids))
	for i, id := range ids {
		hosts[i] = id.Host()
	}
	out := make([]Ending, 0, len(ids))
	err := q.tasks.records(ctx, zone, ids[0].Task(), hosts, func(j jobs.JobInfo, r *codec.Record) {
		out = append(out, endingOf(j, r))
	})
	return out, err
}

func endingOf(j jobs.JobInfo, r *codec.Record) Ending {
	e := Ending{Job: j, Proof: r.End.Proof, Said: trust.Testimony{Kind: codec.SaidEnd, Job: j.ID,
		Token: r.Token, Words: r.EndWords()}}
	if r.End.Settled {
		e.Said = trust.Testimony{Kind: codec.SaidSettled, Job: j.ID, Words: r.SettledWords()}
	}
	switch j.Outcome {
	case jobs.Unknown, jobs.Cancelled, jobs.Expired, jobs.Superseded, jobs.Skipped:
		e.ByQueue = true
	case jobs.Failed:
		e.ByQueue = j.Class == jobs.ClassOperator && r.Crashes >= crashesMost
	}
	return e
}

// SaidOf returns what a node says by an event about a job that has not ended, and its proof; the
// proof is empty if there is none. It returns false for events by which no node says anything.
func SaidOf(h jobs.Happening) (t trust.Testimony, proof string, ok bool) {
	detail, _ := h.Detail.(map[string]any)
	proof, _ = detail["proof"].(string)
	t = trust.Testimony{Kind: h.Event, Job: jobs.ID(h.Object)}
	switch jobs.Kind(h.Event) {
	case jobs.KindRetry, jobs.KindWait, jobs.KindVerify, jobs.KindDefer:
		text, _ := detail["error"].(string)
		t.Words = []string{text}
		return t, proof, true
	}
	if h.Event == codec.SaidStep {
		step, _ := detail["step"].(float64)
		t.Words = codec.StepWords(int(step))
		return t, proof, true
	}
	return t, proof, false
}

// Entries are the stored outputs of a job, attempt after attempt.
type Entries struct{ list []redis.XMessage }

// Entries returns the stored outputs of some jobs of one zone.
func (q *Outputs) Entries(ctx context.Context, zone string, ids []jobs.ID) (map[jobs.ID]Entries,
	error) {
	fresh := make(map[jobs.ID]*Heard, len(ids))
	for _, id := range ids {
		fresh[id] = &Heard{}
	}
	out := make(map[jobs.ID]Entries, len(ids))
	err := q.listen(ctx, zone, fresh, func(id jobs.ID, list []redis.XMessage) {
		out[id] = Entries{list}
	})
	return out, err
}

// All returns the output of all attempts.
func (e Entries) All() jobs.Output { return new(Heard).read(e.list) }

// Of returns the output of an attempt alone, as it was reported at the end of the attempt, and its
// bytes as they are stored; nil: there is none.
func (e Entries) Of(token jobs.Token) (jobs.Output, []byte) {
	for i, m := range e.list {
		text, ok := m.Values["said"].(string)
		if !ok {
			continue
		}
		if of, _, _, _ := codec.ReadSaid(text); of == token {
			return new(Heard).read(e.list[i : i+1]), []byte(text)
		}
	}
	return nil, nil
}
