package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/testkit/redistest"
)

// A writer to Redis gives the partner of a host another address. No node connects there: the job
// waits, people are told, and it runs once the record is as it was signed.
func TestAPartnerIsReachedAsItWasSigned(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 3})
	inventory = strings.Replace(inventory, "fence: none", "fence: required", 1)
	for _, name := range []string{"fw0001", "fw0002"} {
		inventory = inGroup(inventory, name, "pair1")
	}
	h := newHouse(t, inventory)
	h.write("calm.yaml", "name: calm\ndisruptive: true\nsteps:\n  - {name: go, run: 'echo disturbed'}\n")
	h.configure(map[string]any{"runbooks": []string{h.file("calm.yaml")}})
	h.server.kill()
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "calm", "--on", "fw0001", "--detach"); code != 0 {
		t.Fatalf("exit %d", code)
	}
	rdb := redistest.Raw(t, h.redis.Config(), "default")
	key := keys.Zone("default", "hosts:", task.Inventory)
	record := func(name string) (text string, host fleet.Host) {
		text, err := rdb.HGet(t.Context(), key, name).Result()
		if err == nil {
			err = json.Unmarshal([]byte(text), &host)
		}
		if err != nil {
			t.Fatal(err)
		}
		return text, host
	}
	right, partner := record("fw0002")
	_, evil := record("fw0003")
	evil.Name, evil.Group = partner.Name, partner.Group
	wrong, err := json.Marshal(evil)
	if err == nil {
		err = rdb.HSet(t.Context(), key, "fw0002", wrong).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	h.master()
	id := jobs.NewID(task.Task, "fw0001")
	h.awaitSaying(id, "host fw0002, another member of the group, is not reached as the order says")
	for _, e := range f.Log() {
		if e.Host == "fw0003" || strings.Contains(e.Command, "disturbed") {
			t.Errorf("%s was told %q", e.Host, e.Command)
		}
	}
	if n := h.events()["order-doubted"]; n != 1 {
		t.Errorf("people were told %d times", n)
	}
	if err := rdb.HSet(t.Context(), key, "fw0002", right).Err(); err != nil {
		t.Fatal(err)
	}
	wantOutcomes(t, h.wait(task.Task), map[jobs.Outcome]int{jobs.Succeeded: 1})
}

// awaitSaying waits until a job says why it does not begin.
func (h *house) awaitSaying(id jobs.ID, words string) {
	h.t.Helper()
	for late, tick := h.late(), time.Tick(commandEvery); ; {
		_, out, _ := h.plainly("", "job", string(id))
		if strings.Contains(strings.Join(strings.Fields(out), " "), words) {
			return
		}
		select {
		case <-late:
			h.t.Fatalf("job %s says:\n%s", id, out)
		case <-tick:
		}
	}
}
