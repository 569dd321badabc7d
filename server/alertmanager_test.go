package server_test

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/ingress"
	"muster/testkit/promtest"
)

// A real Alertmanager sends an alert, which is diagnosed on the host that it names. Its end is an
// event, too, and starts nothing.
func TestARealAlertmanagerIsAnswered(t *testing.T) {
	t.Parallel()
	door, err := ingress.Parse(fleet.Source{Name: "s", Data: []byte(`sources:
  - {name: alertmanager, preset: alertmanager, secret_file: /x, customer: acme}
`)})
	if err != nil {
		t.Fatal(err)
	}
	w, _, _ := arriving(t, door)
	// The server of the test listens on a unix socket.
	there, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	port := httptest.NewServer(&httputil.ReverseProxy{Transport: w.client.Transport,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(there) }})
	t.Cleanup(port.Close)
	am := promtest.StartAlertmanager(t, port.URL+"/v1/ingress/alertmanager", secret)
	labels := map[string]string{"alertname": "InterfaceErrors", "host": "fw-a1:9100", "severity": "warning"}
	tell := func(end time.Time) {
		if err := am.Alert(labels, end); err != nil {
			t.Fatal(err)
		}
	}
	kinds := func() (all []string) {
		var l api.EventList
		w.call("GET", "/v1/inbox", nil, &l)
		for _, e := range l.Events {
			all = append(all, e.Kind)
		}
		return all
	}
	tell(time.Time{})
	waitFor(t, "the task of the alert", func() bool {
		var all api.TaskList
		w.call("GET", "/v1/tasks", nil, &all)
		return len(all.Tasks) == 1 && all.Tasks[0].On == "fw-a1" && all.Tasks[0].Operator == "trigger:diagnose"
	})
	tell(time.Now())
	waitFor(t, "the end of the alert", func() bool { return slices.Contains(kinds(), "resolved") })
	var all api.TaskList
	w.call("GET", "/v1/tasks", nil, &all)
	if len(all.Tasks) != 1 {
		t.Errorf("the end of the alert has started a task: %+v", all.Tasks)
	}
}
