package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/jobs/queue/apart"
	"muster/testkit/redistest"
)

// inOwnRedis is inZones with a Redis for zone eu. nodes has the zones of each node.
func inOwnRedis(t *testing.T, hosts int, nodes map[string][]string) (h *house,
	own *redistest.Server, abroad int) {
	t.Helper()
	f, h, list := beforeZones(t, hosts)
	h.fleet = f
	own = redistest.StartServerWithUsers(t, redistest.UsersFile(t, "eu", "default"), nil)
	t.Cleanup(func() { h.check("eu") })
	h.apart = apart.Zones{"eu": own.Config().URL}
	there := map[string]any{"zones": []string{"eu=" + own.Config().URL}}
	h.configure(map[string]any{"redis": there})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	for name, zones := range nodes {
		if h.zone = "all"; len(zones) == 1 {
			h.zone = zones[0]
		}
		h.configure(map[string]any{"redis": there, "node": map[string]any{"name": name, "dir": h.file(name)},
			"master": map[string]any{"zones": zones, "slots": 4, "children": 2}})
		h.master()
	}
	return h, own, len(list)
}

var aNodeEach = map[string][]string{"home": {"default"}, "abroad": {"eu"}}

// A node that serves a lost zone, too, has all its places full of its jobs: it works for the others.
func TestALostZoneHoldsNoPlacesOfANode(t *testing.T) {
	t.Parallel()
	const hosts = 30
	h, own, abroad := inOwnRedis(t, hosts, map[string][]string{"both": {"default", "eu"}})
	id := h.submit("zone=eu", held) // ten jobs, and two children with four slots
	h.lookUntil("all places are taken", func(c *cli.Client) (any, bool, error) {
		var info jobs.TaskInfo
		err := c.Get(t.Context(), "/v1/tasks/"+string(id), nil, &info)
		return info, info.Running == 8, err
	})
	stopped := own.Process()
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer stopped.Signal(syscall.SIGCONT) // it cannot be ended before
	letGo(t, h.fleet)
	wantOutcomes(t, h.wait(h.submit("zone=default", "true")),
		map[jobs.Outcome]int{jobs.Succeeded: hosts - abroad})
	if err := stopped.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: abroad})
}

// awaitZone waits until the queue of a zone can be read.
func (h *house) awaitZone(zone string) {
	h.t.Helper()
	h.lookUntil("the queue of zone "+zone, func(c *cli.Client) (any, bool, error) {
		var q api.QueueInfo
		err := c.Get(h.t.Context(), "/v1/queue", nil, &q)
		return q, slices.ContainsFunc(q.Zones, func(z api.Zone) bool {
			return z.Zone == zone && z.Trouble == ""
		}), err
	})
}

// Whatever becomes of the Redis of a zone, work of other zones goes on.
func TestAZoneLosesItsRedisAlone(t *testing.T) {
	t.Parallel()
	const hosts = 30
	h, own, abroad := inOwnRedis(t, hosts, aNodeEach)
	id := h.submit("all", "true")
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	if n := own.Do(t, "EXISTS", "muster:{eu}:task:"+string(id)); n != int64(1) {
		t.Errorf("the Redis of the zone has %v of the task", n)
	}
	if n := h.redis.Do(t, "EXISTS", "muster:{eu}:task:"+string(id)); n != int64(0) {
		t.Errorf("the Redis of the hub has the zone's part of the task")
	}

	// It answers nothing any more, and does not refuse either.
	stopped := own.Process()
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer stopped.Signal(syscall.SIGCONT) // it cannot be ended before
	goesOn := func() {
		t.Helper()
		wantOutcomes(t, h.wait(h.submit("zone=default", "true")),
			map[jobs.Outcome]int{jobs.Succeeded: hosts - abroad})
	}
	goesOn()
	var list []jobs.TaskInfo
	h.query(&list, "tasks")
	if len(list) != 2 || list[0].State != jobs.TaskEnded || list[1].State != jobs.TaskAway ||
		list[1].Outcomes[jobs.Succeeded] != hosts-abroad {
		t.Errorf("the tasks are %+v", list)
	}
	if out, code := h.muster("run", "exec", "--on", "zone=eu", "--arg", "cmd=true", "--detach"); code == 0 {
		t.Errorf("a zone without its Redis took a task: %s", out)
	}
	if err := own.Process().Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	h.awaitZone("eu")
	wantOutcomes(t, h.wait(h.submit("zone=eu", "true")), map[jobs.Outcome]int{jobs.Succeeded: abroad})

	// It is gone, and comes back as after any restart.
	own.Kill()
	goesOn()
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	h.awaitZone("eu")
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	if out, code := h.muster("tasks"); code != 0 || strings.Count(out, "exec") < 4 {
		t.Errorf("exit %d: %s", code, out)
	}
}

// Two lists would be two queues of a zone, with locks of their own: the same host worked on twice.
func TestAProcessWithAnotherListOfZonesDoesNotStart(t *testing.T) {
	t.Parallel()
	h, _, _ := inOwnRedis(t, 4, aNodeEach)
	h.zone = "eu"
	unused := redistest.StartServerWithUsers(t, redistest.UsersFile(t, "eu", "default"), nil)
	unused.Do(t, "HSET", "muster:{eu}:zone", "run", "r", "seat", "of another house")
	another := []string{"eu=" + unused.Config().URL}
	for name, c := range map[string]struct {
		role  string
		zones []string
		want  string
	}{
		"a node without the zone":            {"master", []string{}, "on a Redis of its own"},
		"a server without the zone":          {"server", []string{}, "on a Redis of its own"},
		"a node with another server of it":   {"master", another, "not the one on which others have it"},
		"a server with another server of it": {"server", another, "not the one on which others have it"},
	} {
		h.configure(map[string]any{"redis": map[string]any{"zones": c.zones},
			"server": map[string]any{"listen": "unix:" + h.file("other.sock")},
			"node":   map[string]any{"name": "other", "dir": h.file("other")},
			"master": map[string]any{"zones": []string{"eu"}}})
		p := h.start(c.role, "--config", h.file("muster.yaml"))
		if code := p.end(); code == 0 || !strings.Contains(p.log.String(), c.want) {
			t.Errorf("%s: exit %d: %s", name, code, p.log)
		}
	}
	if keys := unused.Do(t, "DBSIZE"); keys != int64(1) {
		t.Errorf("the server of another house has %v keys", keys)
	}
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 4})
}
