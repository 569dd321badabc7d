package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
)

// why is the body of an order.
func why(reason string) api.OrderRequest { return api.OrderRequest{Reason: reason} }

// turn gives an order that turns something on or off.
func (w *world) turn(path, reason string) jobs.Switched {
	w.t.Helper()
	var did jobs.Switched
	if res := w.call("POST", path, why(reason), &did); res.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %s", path, res.Status)
	}
	return did
}

// startable counts the jobs that a worker gets in a zone, and ends them.
func (w *world) startable(zone string) int {
	w.t.Helper()
	n := 0
	w.work(zone, func(host string) jobs.Result {
		n++
		return succeed(host)
	})
	return n
}

func (w *world) pauses(question string) api.PauseList {
	w.t.Helper()
	var p api.PauseList
	if res := w.call("GET", "/v1/pauses"+question, nil, &p); res.StatusCode != http.StatusOK {
		w.t.Fatalf("pauses: %s", res.Status)
	}
	return p
}

func TestAPauseKeepsJobsFromStartingUntilItsEnd(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, cfg queue.Config) {
		w := start(t, setup{redis: &cfg})
		w.manned()
		task := w.submit(run("fw*")).Task // two in default, one in eu; all of acme
		const note = "paused by alice (unproven): a fire"
		for _, c := range []struct {
			path  string
			what  jobs.Switch
			stand api.PauseList
		}{
			{"/v1/tasks/" + string(task), jobs.SwitchTask,
				api.PauseList{Tasks: map[jobs.TaskID]string{task: note}}},
			{"/v1/customers/acme", jobs.SwitchCustomer,
				api.PauseList{Pauses: jobs.Pauses{Customers: map[string]string{"acme": note}}}},
			{"/v1/zones/default", jobs.SwitchZone,
				api.PauseList{Pauses: jobs.Pauses{Zones: map[string]string{"default": note}}}},
		} {
			did := w.turn(c.path+"/pause", "a fire")
			if did.What != c.what || !did.Paused || did.Already || did.Note != note {
				t.Errorf("%s: pause answers %+v", c.path, did)
			}
			if did = w.turn(c.path+"/pause", "another one"); !did.Already || did.Note != note {
				t.Errorf("%s: a second pause answers %+v, want the note of the first", c.path, did)
			}
			for _, question := range []string{"?tasks=true", "?task=" + string(task)} {
				if diff := cmp.Diff(filled(c.stand), w.pauses(question)); diff != "" {
					t.Errorf("%s: pauses%s (-want +got):\n%s", c.path, question, diff)
				}
			}
			if n := w.startable("default"); n != 0 {
				t.Errorf("%s: %d jobs start all the same", c.path, n)
			}
			if did = w.turn(c.path+"/resume", ""); did.Paused || did.Already {
				t.Errorf("%s: resume answers %+v", c.path, did)
			}
			if did = w.turn(c.path+"/resume", ""); did.Paused || !did.Already {
				t.Errorf("%s: a second resume answers %+v", c.path, did)
			}
		}
		if n := w.startable("default"); n != 2 {
			t.Errorf("%d jobs start after all pauses, want 2", n)
		}
		for _, words := range []string{"task paused", "customer resumed", "zone paused", `reason="a fire"`} {
			if !strings.Contains(w.log.String(), words) {
				t.Errorf("the log lacks %s", words)
			}
		}
	})
}

// filled has the empty maps that an answer has.
func filled(p api.PauseList) api.PauseList {
	if p.Zones == nil {
		p.Zones = map[string]string{}
	}
	if p.Customers == nil {
		p.Customers = map[string]string{}
	}
	if p.Tasks == nil {
		p.Tasks = map[jobs.TaskID]string{}
	}
	p.NoNode = map[string]string{}
	return p
}

func TestPausesOfATaskAreThoseThatKeepIt(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	mine := w.submit(run("fw001")).Task
	other := w.submit(run("vpn1")).Task // in eu, of no customer
	w.turn("/v1/customers/acme/pause", "")
	w.turn("/v1/zones/eu/pause", "")
	if p := w.pauses("?task=" + string(mine)); len(p.Zones) != 0 || p.Customers["acme"] == "" {
		t.Errorf("of %s: %+v", mine, p)
	}
	if p := w.pauses("?task=" + string(other)); p.Zones["eu"] == "" || len(p.Customers) != 0 {
		t.Errorf("of %s: %+v", other, p)
	}
}

// A pause outlives the hosts it was for, and must have an end all the same.
func TestACustomerWithoutHostsIsResumedIfItWasPaused(t *testing.T) {
	t.Parallel()
	list := hosts()
	w := start(t, setup{inventory: func() (*fleet.Inventory, error) { return fleet.New(list) }})
	w.turn("/v1/customers/acme/pause", "")
	list = list[3:]
	if err := w.server.Stock().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if did := w.turn("/v1/customers/acme/resume", ""); did.Paused || did.Already {
		t.Errorf("resume answers %+v", did)
	}
	// A duty that read the pause before may still give it to a zone, and takes it back.
	waitFor(t, "the end of the pause", func() bool {
		res, _ := w.raw("POST", "/v1/customers/acme/resume", nil, nil)
		return res.StatusCode == 404
	})
}

func TestOnlyALiftEndsAHalt(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, cfg queue.Config) {
		w := start(t, setup{redis: &cfg})
		w.submit(run("fw*"))
		paused := w.submit(run("fw001")).Task
		w.turn("/v1/tasks/"+string(paused)+"/pause", "later")
		w.turn("/v1/zones/eu/pause", "theirs")
		const note = "halted by alice (unproven): fire"
		if did := w.turn("/v1/halt", "fire"); did.What != jobs.SwitchAll || !did.Paused || did.Note != note ||
			!cmp.Equal(did.Zones, []string{"default", "eu"}) || did.Missing == nil {
			t.Errorf("halt answers %+v", did)
		}
		if did := w.turn("/v1/halt", "again"); !did.Already || did.Note != note {
			t.Errorf("a second halt answers %+v", did)
		}
		if p := w.pauses(""); p.Halted != note {
			t.Errorf("pauses: %+v", p)
		}
		w.turn("/v1/zones/default/resume", "")
		w.turn("/v1/customers/acme/resume", "")
		if n := w.startable("default"); n != 0 {
			t.Errorf("%d jobs start in a halt", n)
		}
		var did api.Lifted
		w.call("POST", "/v1/lift", why("it is out"), &did)
		stay := filled(api.PauseList{Pauses: jobs.Pauses{
			Zones: map[string]string{"eu": "paused by alice (unproven): theirs"}},
			Tasks: map[jobs.TaskID]string{paused: "paused by alice (unproven): later"}})
		if diff := cmp.Diff(stay, did.Stay); did.Paused || did.Already || diff != "" {
			t.Errorf("lift answers %+v; stay (-want +got):\n%s", did, diff)
		}
		if n := w.startable("default"); n != 2 {
			t.Errorf("%d jobs start after the lift, want the 2 that nobody paused", n)
		}
		if n := w.startable("eu"); n != 0 {
			t.Errorf("%d jobs start in a paused zone", n)
		}
	})
}

func TestCancelOfSomeJobs(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := w.submit(run("fw*")).Task
	path := "/v1/tasks/" + string(task) + "/cancel"
	job := func(host string) jobs.ID { return jobs.NewID(task, host) }
	for _, c := range []struct {
		body api.CancelRequest
		code int
		want string
	}{
		{api.CancelRequest{Jobs: []jobs.ID{"0000000000:fw001", "x"}}, 422, "body.jobs[0]: job 0000000000:fw001 " +
			"is of another task"},
		{api.CancelRequest{Jobs: []jobs.ID{job("fw001"), "x"}}, 422, `body.jobs[1]: job id "x"`},
		{api.CancelRequest{Hosts: []string{"-x"}}, 422, "body.hosts[0]"},
		{api.CancelRequest{Hosts: []string{"fw001", "vpn1"}}, 404, "vpn1"},
		{api.CancelRequest{OrderRequest: why(strings.Repeat("x", 501))}, 422, "body.reason"},
	} {
		var p problem
		if res := w.call("POST", path, c.body, &p); res.StatusCode != c.code || !strings.Contains(p.words(), c.want) {
			t.Errorf("%+v: %s %s, want %d %s", c.body, res.Status, p.words(), c.code, c.want)
		}
	}
	for _, list := range []string{`{"jobs":[]}`, `{"hosts":[]}`} {
		if res := w.call("POST", path, list, nil); res.StatusCode != 422 {
			t.Errorf("%s: %s: nobody who names no job means all of them", list, res.Status)
		}
	}
	var did jobs.Cancel
	body := api.CancelRequest{Jobs: []jobs.ID{job("fw001")}, Hosts: []string{"fw001", "fw003"}}
	if w.call("POST", path, body, &did); did != (jobs.Cancel{Task: task, Ended: 2}) {
		t.Errorf("cancel answers %+v", did)
	}
	if w.call("POST", path, body, &did); did != (jobs.Cancel{Task: task, Already: 2}) {
		t.Errorf("again: %+v", did)
	}
	if n := w.startable("default"); n != 1 {
		t.Errorf("%d jobs of the task go on, want 1", n)
	}
}

func TestSupersedeEndsWhatIsQueued(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	body := run("fw*")
	body.Supersedes = "rules/acme"
	old := w.submit(body)
	if old.Supersedes != "rules/acme" {
		t.Errorf("submit answers %+v", old)
	}
	body.On = "fw001"
	w.submit(body)
	var info jobs.TaskInfo
	w.call("GET", "/v1/tasks/"+string(old.Task), nil, &info)
	if info.Outcomes[jobs.Superseded] != 1 || info.Outcomes.Sum() != 1 {
		t.Errorf("the older task: %+v", info)
	}
	for _, key := range []string{"a b", "a//b", "{x}", strings.Repeat("x", 129)} {
		body.Supersedes = key
		var p problem
		if w.call("POST", "/v1/tasks", body, &p); !strings.Contains(p.words(), "body.supersedes") {
			t.Errorf("key %q: %s", key, p.words())
		}
	}
}

// half is a queue of which one zone cannot be asked.
type half struct{ *queuetest.Queue }

func (h half) Halt(ctx context.Context, note string) (jobs.Switched, error) {
	did, err := h.Queue.Halt(ctx, note)
	did.Missing = append(did.Missing, "eu")
	return did, err
}

func (h half) Thaw(context.Context, string, string) (bool, error) {
	return false, errors.New("redis is away")
}

func TestWhatCouldNotBeDoneIsSaid(t *testing.T) {
	t.Parallel()
	w := start(t, setup{wrap: func(q *queuetest.Queue) everything { return half{q} }})
	if did := w.turn("/v1/halt", ""); !cmp.Equal(did.Missing, []string{"eu"}) {
		t.Errorf("halt answers %+v", did)
	}
	var p problem
	if res := w.call("POST", "/v1/zones/default/thaw", why("x"), &p); res.StatusCode != 503 {
		t.Errorf("thaw: %s %s", res.Status, p.words())
	}
}

func TestThawOfAZoneThatIsNotFrozen(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	var did api.Thawed
	w.call("POST", "/v1/zones/default/thaw", why("I looked"), &did)
	if want := (api.Thawed{Zone: "default", Already: true,
		Note: "thawed by alice (unproven): I looked"}); did != want {
		t.Errorf("got %+v, want %+v", did, want)
	}
}
