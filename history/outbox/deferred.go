package outbox

import (
	"context"

	"muster/history"
	"muster/jobs"
)

// Deferred returns what names the jobs of a task that were deferred to a window at some time, by
// the events of a history.
func Deferred(s *history.Store) func(context.Context, jobs.TaskID) (map[string]bool, error) {
	h := history.HandleOf(s)
	return func(ctx context.Context, id jobs.TaskID) (map[string]bool, error) {
		out := map[string]bool{}
		err := h.Rows(ctx, "deferred jobs", `select distinct object from events where task = $1 and
			event in ('defer', 'appoint')`, []any{string(id)}, func(scan func(...any) error) error {
			var object string
			err := scan(&object)
			out[object] = true
			return err
		})
		return out, err
	}
}
