package server_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"muster/api"
)

// The newest task of an operator is never that of another, or muster cancel last would
// end a stranger's work.
func TestTasksOfWhoAsks(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(hosts())})
	own := w.submit(api.Submit{Runbook: "facts", On: "fw001", As: "carol"})
	w.submit(api.Submit{Runbook: "facts", On: "fw002", As: "dave"})
	for _, c := range []struct {
		user string
		want int
	}{{"carol", 1}, {"dave", 1}, {"erin", 0}} {
		var list api.TaskList
		res, text := w.raw("GET", "/v1/tasks?mine=true&limit=1", nil, http.Header{api.UserHeader: {c.user}})
		if err := json.Unmarshal(text, &list); err != nil || res.StatusCode != 200 || len(list.Tasks) != c.want {
			t.Fatalf("%s: %s, %d tasks, want %d", c.user, res.Status, len(list.Tasks), c.want)
		}
		if c.user == "carol" && list.Tasks[0].Task != own.Task {
			t.Errorf("carol's last is %s, want %s", list.Tasks[0].Task, own.Task)
		}
	}
}
