package server_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/jobs/queue/form"
	"muster/scripts"
	"muster/server"
	"muster/testkit/redistest"
)

// A server that was forgotten in an upgrade changes nothing any more, says so, and still shows what
// is there; it does not start again.
func TestAServerOlderThanTheDataChangesNothing(t *testing.T) {
	t.Parallel()
	_, cfg := redistest.StartMini(t)
	w := start(t, setup{redis: &cfg})
	w.manned()
	task := w.submit(run("fw001")).Task
	hub := redistest.Raw(t, cfg, "hub")
	if by := hub.HGet(t.Context(), "muster:{hub}:form", "form_by").Val(); by != "1.2.3" {
		t.Errorf("the hub was written by %q", by)
	}
	hub.HSet(t.Context(), "muster:{hub}:form", "form", form.Mine+1, "form_by", "7.0.0")
	const want = "the hub has been written by muster 7.0.0"
	waitFor(t, "that health tells it", func() bool {
		var h api.Health
		w.call(http.MethodGet, "/v1/health", nil, &h)
		return strings.Contains(h.Status, want)
	})
	for path, body := range map[string]any{
		"/v1/tasks": run("fw002"), "/v1/halt": api.OrderRequest{Reason: "x"},
		"/v1/tasks/" + string(task) + "/cancel": api.OrderRequest{Reason: "x"},
	} {
		res, answer := w.raw(http.MethodPost, path, body, nil)
		if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(answer), want) {
			t.Errorf("POST %s: %s, %s", path, res.Status, answer)
		}
	}
	if res := w.call(http.MethodGet, "/v1/tasks/"+string(task), nil, nil); res.StatusCode != http.StatusOK {
		t.Errorf("look at the task: %s", res.Status)
	}
	if n := len(w.jobsOf(task)); n != 1 {
		t.Errorf("%d jobs", n)
	}

	catalog, err := scripts.NewCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := server.New(server.Config{Listen: "unix:" + shortPath(t), Version: "1.2.3"}, server.Deps{
		Queue: stores(w.queue), Catalog: catalog, Inventory: given(fixed(hosts())), Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	var newer *form.Error
	if err := again.Run(t.Context()); !errors.As(err, &newer) || newer.By != "7.0.0" {
		t.Errorf("started again: %v", err)
	}

	hub.HSet(t.Context(), "muster:{hub}:form", "form", form.Mine) // the way back
	waitFor(t, "that the server works again", func() bool {
		res, _ := w.raw(http.MethodPost, "/v1/tasks", run("fw002"), nil)
		return res.StatusCode/100 == 2
	})
}
