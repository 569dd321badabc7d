package main

import (
	"testing"

	"muster/jobs"
)

// A rollout is stopped in its first wave: no host of the others sees anything of it.
func TestDrillOfABadRollout(t *testing.T) {
	t.Parallel()
	h, f, _ := manned(t, 6)
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "exec", "all", "--arg", "cmd="+marked("new-rules"), "--waves", "2,100%",
		"--detach"); code != 0 {
		t.Fatalf("run: exit %d", code)
	}
	d := drillOf(h, "A rollout goes wrong", "0wcy7y2fb2", string(task.Task), "fw001", "fw0001")
	begun := h.inHand(2)
	d.wants(d.play(), "fw001 drops traffic: INC-3", begun[0], begun[1])
	letGo(t, f, begun[0])
	h.awaitJob(jobs.NewID(task.Task, begun[0]), jobs.Ended)
	d.wants(d.play(), "fw001 drops traffic: INC-3", begun[0])
	wantOutcomes(t, h.wait(task.Task), map[jobs.Outcome]int{jobs.Succeeded: 1, jobs.Cancelled: 5})
	if ran := d.counted(f, task.Task, "new-rules", hostNames(f)); ran != 2 {
		t.Errorf("it ran on %d hosts, want 2", ran)
	}
}

// A command that does not end is stopped on its host, and the host takes the next one.
func TestDrillOfAStuckJob(t *testing.T) {
	t.Parallel()
	h, f, _ := manned(t, 2)
	id := h.submit("all", marked("fsck"))
	d := drillOf(h, "A job is stuck", "0wcy7y2fb2", string(id), "fw001", "fw0001")
	h.inHand(2)
	d.wants(d.play(), "running")
	d.play()
	h.awaitJob(jobs.NewID(id, "fw0001"), jobs.Ended)
	d.wants(d.play(), "cancelled", "stopped on the host", "hangs in fsck: INC-4")
	d.wants(d.play(), "fw001")
	letGo(t, f)
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 1, jobs.Cancelled: 1})
	if ran := d.counted(f, id, "fsck", hostNames(f)); ran != 2 {
		t.Errorf("it ran on %d hosts, want 2", ran)
	}
}
