package queue_test

import (
	"maps"
	"slices"

	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/model"
)

// ask orders to ask the host of a job, mostly of a job that has ended unknown.
func (m *walker) ask(t *rapid.T) {
	id := m.jobID(t)
	if ids := m.unknown(); len(ids) > 0 && rapid.IntRange(0, 4).Draw(t, "any") > 0 {
		id = rapid.SampledFrom(ids).Draw(t, "unknown")
	}
	m.twin.ask(t, model.Ask{Job: id, Note: "fay: INC-7"})
	// The calls that lead to an answer seldom happen in a row by chance.
	for range rapid.IntRange(0, 2).Draw(t, "takes") {
		c := m.child(t)
		m.send(t, c, m.request(t, c, 4))
	}
	if rapid.Bool().Draw(t, "answered") {
		m.answer(t)
	}
}

func (m *walker) unknown() (ids []jobs.ID) {
	for _, id := range slices.Sorted(maps.Keys(m.zone.Jobs)) {
		if m.zone.Jobs[id].End.Outcome == jobs.Unknown {
			ids = append(ids, id)
		}
	}
	return ids
}

// answer delivers the answer of a worker that looked, maybe late, maybe twice, maybe of another
// attempt.
func (m *walker) answer(t *rapid.T) {
	if len(m.looks) == 0 {
		return
	}
	g := m.looks[len(m.looks)-1]
	if rapid.IntRange(0, 3).Draw(t, "an older one") == 0 {
		g = rapid.SampledFrom(m.looks).Draw(t, "order")
	}
	r := jobs.Reading{Job: g.Job, Token: g.Token, Words: "it says so", Over: rapid.Bool().Draw(t, "over"),
		Answer: rapid.SampledFrom([]jobs.Answer{jobs.AnswerSettled, jobs.AnswerRunning, jobs.AnswerGone}).Draw(t, "how")}
	if j := m.zone.Jobs[g.Job]; j != nil && rapid.Bool().Draw(t, "began") {
		r.Began = j.Token + rapid.SampledFrom([]jobs.Token{-5, 0, 0, 0, 1}).Draw(t, "another")
		r.Began = max(r.Began, 0)
	}
	if r.Answer == jobs.AnswerSettled {
		r.End = &jobs.Result{Outcome: rapid.SampledFrom([]jobs.Outcome{jobs.Succeeded, jobs.Succeeded, jobs.Failed,
			jobs.Timeout, jobs.Cancelled, jobs.RolledBack}).Draw(t, "outcome")}
		if r.End.Outcome == jobs.Failed {
			code := 3
			r.End.ExitCode, r.End.Class, r.End.Error = &code, jobs.ClassUser, "exit 3"
			r.End.Note = rapid.SampledFrom([]string{"", "output lost"}).Draw(t, "note")
		}
	}
	m.twin.ask(t, model.Ask{Job: g.Job, Reading: &r})
}
