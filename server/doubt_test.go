package server_test

import (
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
	"muster/windows"
)

// A fleet whose workers cannot learn what is agreed begins nothing, and a node or a server with
// other time zone data puts windows elsewhere: health says both, and which.
func TestHealthTellsWhoDoesNotKnowWhatIsAgreed(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	health := func() api.Health {
		t.Helper()
		var h api.Health
		if res := w.call("GET", "/v1/health", nil, &h); res.StatusCode != 200 {
			t.Fatal(res.Status)
		}
		return h
	}
	if h := health(); h.Doubt {
		t.Fatalf("at first: %+v", h)
	}
	node := jobs.Node{ID: "n1", State: "running", Clock: jobs.Clock{Zones: windows.ZoneData}}
	for _, test := range []struct {
		name string
		set  func() error
		want string
	}{
		{"a node", func() error {
			n := node
			n.Doubt = "the answer took 3s"
			return w.queue.Beat(t.Context(), n)
		}, "node n1 does not know what is agreed about times and defers jobs: the answer took 3s"},
		{"other zones of a node", func() error {
			n := node
			n.Clock.Zones = "2019a"
			return w.queue.Beat(t.Context(), n)
		}, "node n1 has time zone data 2019a, and this server " + windows.ZoneData},
		{"other zones of a server", func() error {
			if err := w.queue.Beat(t.Context(), node); err != nil {
				return err
			}
			_, err := w.queue.SayZones(t.Context(), "old", "2020a")
			return err
		}, "server old has time zone data 2020a, and this one " + windows.ZoneData},
	} {
		if err := test.set(); err != nil {
			t.Fatal(err)
		}
		if h := health(); !h.Doubt || !strings.Contains(h.Status, test.want) {
			t.Errorf("%s: %+v, want %q", test.name, h, test.want)
		}
		var list api.NodeList
		w.call("GET", "/v1/nodes", nil, &list)
		if len(list.Nodes) != 1 || strings.HasPrefix(test.want, "node") == (list.Nodes[0].Note == "") {
			t.Errorf("%s: nodes say %+v", test.name, list.Nodes)
		}
	}
}
