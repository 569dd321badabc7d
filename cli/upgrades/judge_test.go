package upgrades

import (
	"slices"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
)

// An upgrade is complete when all that reports runs the new version, and nothing is unknown.
func TestWhatHoldsAnUpgradeIsNamed(t *testing.T) {
	t.Parallel()
	server := func(version string, gone bool) api.Serving {
		return api.Serving{Server: "s", Version: version, Gone: gone}
	}
	good := []jobs.Node{{ID: "n", Version: "2", State: "running", Children: []jobs.Child{{PID: 7, Job: "t:new"}}}}
	child := func(c jobs.Child) []jobs.Node {
		return []jobs.Node{{ID: "n", Version: "2", State: "running", Children: []jobs.Child{c}}}
	}
	for name, c := range map[string]struct {
		servers []api.Serving
		nodes   []jobs.Node
		forms   []api.DataForm
		holds   string // what, where and jobs of the only hold; empty: complete
	}{
		"all new":       {[]api.Serving{server("2", false)}, good, []api.DataForm{{Where: "the hub", Has: "1"}}, ""},
		"old server":    {[]api.Serving{server("1", false)}, good, nil, "server s "},
		"silent server": {[]api.Serving{server("2", true)}, good, nil, "server s "},
		"bad record":    {[]api.Serving{server("", false)}, good, nil, "server s "},
		"no server":     {nil, good, nil, "server all "},
		"no node":       {[]api.Serving{server("2", false)}, nil, nil, "node all "},
		"old node": {[]api.Serving{server("2", false)}, []jobs.Node{{ID: "n", Version: "1", State: "running",
			Children: []jobs.Child{{PID: 7, Jobs: []jobs.ID{"t:a", "t:b"}}}}}, nil, "node n t:a, t:b"},
		"draining": {[]api.Serving{server("2", false)}, []jobs.Node{{ID: "n", Version: "1", State: jobs.NodeDraining}}, nil,
			"node n "},
		"gone, and was new": {[]api.Serving{server("2", false)}, []jobs.Node{{ID: "n", Version: "2", State: jobs.NodeGone}},
			nil, "node n "},
		"old child": {[]api.Serving{server("2", false)}, child(jobs.Child{PID: 7, Job: "t:a", Version: "1"}), nil,
			"child n pid 7 t:a"},
		"orphan": {[]api.Serving{server("2", false)}, child(jobs.Child{PID: 7, Job: "t:a", Orphan: true}), nil,
			"child n pid 7 t:a"},
		"newer data": {[]api.Serving{server("2", false)}, good, []api.DataForm{{Where: "zone a", Has: "9", Wrong: "no"}},
			"data zone a "},
	} {
		st := judgeAll("2", api.UpgradeState{Version: "2", Servers: c.servers, Forms: c.forms}, c.nodes)
		got := ""
		for _, h := range st.Holds {
			words := make([]string, len(h.Jobs))
			for i, id := range h.Jobs {
				words[i] = string(id)
			}
			got += h.What + " " + h.Where + " " + strings.Join(words, ", ")
			if h.Do == "" || h.Version == "" {
				t.Errorf("%s: nothing to do, or no version: %+v", name, h)
			}
		}
		if got != c.holds || st.Complete != (c.holds == "") {
			t.Errorf("%s: complete %t, holds %q, want %q", name, st.Complete, got, c.holds)
		}
		if text := st.text(200, true); strings.Contains(text, "is gone\n") != st.Complete {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Versions are counted, and the new one is the first.
func TestVersionsAreCounted(t *testing.T) {
	t.Parallel()
	st := judgeAll("2", api.UpgradeState{Servers: []api.Serving{{Server: "a", Version: "1"},
		{Server: "b", Version: "2"}}}, []jobs.Node{
		{ID: "x", Version: "2", State: "running", Children: []jobs.Child{{Job: "t:a", Version: "1"}, {Job: "t:b"}}},
		{ID: "y", Version: "1", State: jobs.NodeDraining, Children: []jobs.Child{{Job: "t:c"}}},
		{ID: "z", Version: "1", State: jobs.NodeGone}})
	want := []Version{{Version: "2", Servers: 1, Running: 1, Jobs: 1},
		{Version: "1", Servers: 1, Draining: 1, Gone: 1, Children: 1, Jobs: 2}}
	if !slices.Equal(st.Versions, want) {
		t.Errorf("got %+v, want %+v", st.Versions, want)
	}
}
