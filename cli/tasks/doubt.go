package tasks

import (
	"context"
	"net/url"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// doubtOf says why a node has doubted the order of a task. It returns nothing if history has no
// such event, or cannot be asked: the task is shown all the same.
func doubtOf(ctx context.Context, s *cli.Session, id jobs.TaskID) string {
	q := url.Values{"of": {string(id)}, "event": {"order-doubted"}, "limit": {"1"}}
	var page api.PastEvents
	if s.Get(ctx, "/v1/history/events", q, &page) != nil || len(page.Events) == 0 {
		return ""
	}
	words := "a node doubted the order of this task"
	said, _ := page.Events[0].Detail.(map[string]any)
	if said["mode"] == "warn" {
		words += ", and ran its jobs all the same (mode warn)"
	}
	if note, _ := said["note"].(string); note != "" {
		words += ": " + note
	}
	return words
}
