package main

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"muster/api"
	"muster/audit"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// A server dies by KILL while operators submit: Redis knows no task that is not in the audit log, and
// what the log lacks is the end of some orders, not a beginning.
func TestNoTaskIsInRedisThatIsNotInTheAuditLog(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	h := newHouse(t, inventory)
	var all sync.WaitGroup
	var over atomic.Bool
	submitted := make(chan struct{}, 1000)
	for range 3 {
		all.Go(func() {
			for !over.Load() {
				// Some of them meet a server that has just gone, and try again.
				h.muster("run", "exec", "--on", "fw0001", "--arg", "cmd=true", "--detach")
				select {
				case submitted <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 3 {
		for range 6 {
			<-submitted
		}
		h.server.kill()
		h.server = h.start("server", "--config", h.file("muster.yaml"))
		h.server.await("server listens")
	}
	over.Store(true)
	all.Wait()
	var tasks []jobs.TaskInfo
	if code := h.query(&tasks, "tasks", "--limit", "500"); code != 0 || len(tasks) == 0 {
		t.Fatalf("tasks: exit code %d, %d tasks", code, len(tasks))
	}
	var page api.AuditPage
	if code := h.query(&page, "audit", "ls", "--verb", "task.submit", "--limit", "500"); code != 0 {
		t.Fatalf("audit ls: exit code %d", code)
	}
	written := map[string]bool{}
	for _, e := range page.Entries {
		if e.Kind == audit.KindOrder && strings.HasPrefix(e.Object, "task/") {
			written[strings.TrimPrefix(e.Object, "task/")] = true
		}
	}
	for _, task := range tasks {
		if !written[string(task.Task)] {
			t.Errorf("task %s is in Redis, and not in the audit log", task.Task)
		}
	}
	if out, code := h.muster("audit", "verify"); code != 0 {
		t.Errorf("verify: %d %s", code, out)
	}
}
