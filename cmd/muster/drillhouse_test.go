package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"muster/cli/founding"
	"muster/internal/fakefleet"
	"muster/internal/serverkey"
	"muster/jobs"
)

// drilled reports whether make drill runs: the pages of this file and its neighbours take more time
// than make test has.
func drilled(t *testing.T) bool {
	t.Helper()
	t.Parallel()
	return *wholeDrill
}

// An inventory with a mistake is refused, and the house works with the earlier one.
func TestDrillOfARefusedInventory(t *testing.T) {
	if !drilled(t) {
		return
	}
	f, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	h := newHouse(t, inventory)
	h.master()
	h.awaitHealth("ok")
	h.write("fleet.yaml.right", inventory)
	h.write("fleet.yaml", strings.Replace(inventory, "name: fw0002", "name: fw0001", 1)+"nonsense: 1\n")
	h.server.await("the changed inventory is refused")
	d := drillOf(h, "The inventory is refused")
	d.wants(d.play(), "fleet.yaml:", "nonsense")
	id := h.submit("all", ": meanwhile")
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 2})
	d.play()
	if ran := d.counted(f, id, ": meanwhile", hostNames(f)); ran != 2 {
		t.Errorf("it ran on %d hosts, want 2", ran)
	}
}

// Two hosts have each other's address. Their keys keep their jobs away from the wrong machine, and
// after the repair each does its own work, once.
func TestDrillOfAWrongInventory(t *testing.T) {
	if !drilled(t) {
		return
	}
	h, f, _ := manned(t, 3)
	right := contentOf(t, h.file("fleet.yaml"))
	h.write("fleet.yaml.right", right)
	addresses := [2]string{f.Hosts()[0].Address, f.Hosts()[1].Address}
	wrong := strings.NewReplacer(addresses[0], addresses[1], addresses[1], addresses[0]).Replace(right)
	if wrong == right {
		t.Fatalf("no address was changed:\n%s", right)
	}
	h.write("fleet.yaml", wrong)
	h.server.await("2 changed")
	id := h.submit("all", marked("lamp"))
	h.awaitTask(id, func(i jobs.TaskInfo) bool { return i.Outcomes[jobs.Failed] == 2 })
	h.awaitJob(jobs.NewID(id, "fw0003"), jobs.Running)
	d := drillOf(h, "A wrong inventory is in force", "0wcy7y2fb2", string(id))
	d.wants(d.play(), "fw0001", "fw0002", string(id))
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Failed: 2, jobs.Cancelled: 1})
	d.play()
	letGo(t, f)
	var all []jobs.TaskInfo
	h.query(&all, "tasks")
	for _, task := range all {
		if task.Task != id {
			wantOutcomes(t, h.wait(task.Task), map[jobs.Outcome]int{jobs.Succeeded: 3})
		}
	}
	times := map[string]int{}
	for _, e := range f.Log() {
		if strings.Contains(e.Command, "lamp") {
			times[e.Host]++
		}
	}
	if len(all) != 2 || times["fw0001"] != 1 || times["fw0002"] != 1 || times["fw0003"] != 2 {
		t.Errorf("%d tasks; the hosts ran %v", len(all), times)
	}
	wantNoOverlap(t, f)
}

// other is another installation, whose configuration names the Redis of this one.
func (h *house) other(inventory string) *house {
	h.t.Helper()
	o := *h
	o.dir, o.url = h.t.TempDir(), freeSocket(h.t)
	o.write("fleet.yaml", inventory)
	o.write("server.key", serverkey.File("otherhouse", [serverkey.Size]byte{7}))
	m, err := founding.MakeKey(o.file("server.key"), 0)
	m.Made = true
	if err = errors.Join(err, m.MakeTrust("")); err != nil {
		h.t.Fatal(err)
	}
	o.configure(map[string]any{"node": map[string]any{"name": "othernode", "dir": filepath.Join(o.dir, "node")}})
	return &o
}

// Another installation is refused while servers of ours work. Where it comes in all the same, since
// they seem to be away, its nodes run nothing of ours, and the page repeats what they have ended.
func TestDrillOfTwoInstallations(t *testing.T) {
	if !drilled(t) {
		return
	}
	h, f, m := manned(t, 2)
	letGo(t, f)
	wantOutcomes(t, h.wait(h.submit("all", ": before")), map[jobs.Outcome]int{jobs.Succeeded: 2})
	theirs, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	o := h.other(strings.ReplaceAll(inventory, "name: fw", "name: other"))
	for _, role := range []string{"server", "master"} {
		p := o.start(role, "--config", o.file("muster.yaml"))
		if code := p.end(); code != 2 || !strings.Contains(p.log.String(), `belongs to installation "testhouse"`) {
			t.Fatalf("%s of another installation: exit %d, %s", role, code, p.log)
		}
	}
	const timetable = "muster:{hub}:windows"
	said := fmt.Sprint(h.redis.Do(t, "HGET", timetable, "statement"))
	h.redis.Do(t, "HSET", timetable, "statement", strings.Replace(said, `"at":"20`, `"at":"19`, 1))
	o.server = o.start("server", "--config", o.file("muster.yaml"))
	o.server.await("server listens")
	end(m)
	node := o.master()
	taken := h.submit("all", ": ours")
	wantOutcomes(t, h.wait(taken), map[jobs.Outcome]int{jobs.Failed: 2})
	d := operated(h, "Two installations work on one Redis", "0wcy7y2fb2", string(taken))
	d.wants(d.play(), "othernode", "another server has published inventory")
	end(node)
	end(o.server)
	h.master()
	d.wants(d.play(), "fw0001", "fw0002", string(taken))
	var all []jobs.TaskInfo
	h.query(&all, "tasks")
	for _, task := range all {
		if i := h.wait(task.Task); task.Task != taken && i.Outcomes[jobs.Succeeded] != 2 {
			t.Errorf("task %s: %v", task.Task, i.Outcomes)
		}
	}
	before, ours := ranTimes(f, ": before"), ranTimes(f, ": ours")
	if len(all) != 3 || before != 2 || ours != 2 || len(theirs.Log()) != 0 {
		t.Errorf("%d tasks; ours ran %d and %d, theirs %d", len(all), before, ours, len(theirs.Log()))
	}
	wantNoOverlap(t, f)
}
