package queue_test

import (
	"fmt"

	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/model"
)

// order calls the script order and reads its status. It returns nil if the script broke off.
func (w *twin) order(t rapid.TB, op string, a model.Walk, args ...any) []any {
	args = append([]any{op, a.Token, a.Lasts.Milliseconds()}, args...)
	v, ok := w.call(t, "reorder", args...)
	if !ok {
		return nil
	}
	return v
}

func (w *twin) lock(t rapid.TB, a model.Walk) (status string, oldest jobs.Micros, changes int) {
	v := w.order(t, "lock", a, "n1/1")
	if v == nil {
		return "", 0, 0
	}
	status, oldest, changes = w.zone.Lock(w.now, a)
	got, want := []any{text(v, 0)}, []any{status}
	if status == "go" {
		got = append(got, number(v, 2), number(v, 3))
		want = append(want, int(oldest), changes)
	}
	w.same(t, "order lock", got, want)
	return status, oldest, changes
}

func (w *twin) page(t rapid.TB, a model.Walk, from, size int) {
	v := w.order(t, "page", a, a.At.String(), from, size)
	if v == nil {
		return
	}
	status, n, count := w.zone.Page(w.now, a, from, size)
	got := map[jobs.TaskID]int{}
	if len(v) > 3 {
		list := v[3].([]any)
		for i := 0; i+1 < len(list); i += 2 {
			got[jobs.TaskID(text(list, i))] = number(list, i+1)
		}
	}
	w.same(t, "order page", []any{text(v, 0), number(v, 2), got}, []any{status, n, count})
}

// chunk also returns the scores of the rest as they were read.
func (w *twin) chunk(t rapid.TB, a model.Chunk, old []any) (model.Reordered, []any) {
	args := []any{a.At.String(), a.Oldest.String(), a.Left, a.Size}
	for _, p := range a.Old {
		args = append(args, string(p.Job))
	}
	args = append(args, old...)
	for _, at := range a.New {
		args = append(args, at.String())
	}
	v := w.order(t, "chunk", a.Walk, args...)
	if v == nil {
		return model.Reordered{}, nil
	}
	want := w.zone.Reorder(w.now, a)
	got := model.Reordered{Status: text(v, 0), Moved: number(v, 2), Left: number(v, 3)}
	var scores []any
	if len(v) > 4 {
		list := v[4].([]any)
		for i := 0; i+1 < len(list); i += 2 {
			var at float64 // the embedded Redis writes 1.76e+15
			fmt.Sscan(text(list, i+1), &at)
			got.Rest = append(got.Rest, model.Place{Job: jobs.ID(text(list, i)), At: jobs.Micros(at)})
			scores = append(scores, list[i+1])
		}
	}
	w.same(t, "order chunk", got, want)
	return want, scores
}

func (w *twin) done(t rapid.TB, a model.Done) {
	v := w.order(t, "done", a.Walk, a.At.String(), a.Who, a.Moved, a.Cooldown.Microseconds(), a.How,
		a.Changes)
	if v == nil {
		return
	}
	status, wait := w.zone.Done(w.now, a)
	w.same(t, "order done", []any{text(v, 0), number(v, 2)}, []any{status, int(wait.Microseconds())})
}
