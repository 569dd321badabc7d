package main

import (
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/apitest"
)

// A child logs these when a call gets no answer, and when it does again.
const (
	noAnswer = "no answer from the queue, the call will be repeated"
	answers  = "the queue answers again"
)

var requestID = regexp.MustCompile(`request=(\S+)`)

// requests returns the ids of the requests in the log lines with these words.
func requests(log, words string) []string {
	var ids []string
	for line := range strings.Lines(log) {
		if id := requestID.FindStringSubmatch(line); id != nil && strings.Contains(line, words) {
			ids = append(ids, id[1])
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func TestResultsWaitForARedisThatIsAway(t *testing.T) {
	t.Parallel()
	const hosts = 64
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newHouse(t, inventory)
	// With everysec a confirmed write may be lost by kill -9.
	h.redis.Do(t, "CONFIG", "SET", "appendfsync", "always")
	h.configure(map[string]any{"master": fourByFour, "redis": map[string]any{"timeout": "500ms"}})
	m := h.master()
	id := h.submit("all", held)

	// inHand waits until all children have jobs that none of them has ended yet, and returns their
	// hosts.
	ended := map[string]bool{}
	inHand := func() (hosts []string) {
		h.awaitNode(func(n jobs.Node) bool {
			hosts = nil
			for _, c := range n.Children {
				for _, job := range c.Jobs {
					if !ended[job.Host()] {
						hosts = append(hosts, job.Host())
					}
				}
			}
			return len(hosts) == 16
		})
		for _, host := range hosts {
			ended[host] = true
		}
		return hosts
	}

	// Redis stops to answer, and continues.
	at := inHand()
	h.redis.Process().Signal(syscall.SIGSTOP)
	letGo(t, f, at...)
	m.awaitTimes(noAnswer, 4) // each child has a result that it cannot deliver
	h.redis.Process().Signal(syscall.SIGCONT)
	m.awaitTimes(answers, 4)

	// Redis is killed, and starts again from its file.
	inHand()
	h.redis.Kill()
	letGo(t, f)
	m.awaitTimes(noAnswer, 8)
	if _, code := h.muster("tasks"); code == cli.ExitOK {
		t.Error("a list of tasks came without Redis")
	}
	if err := h.redis.Start(); err != nil {
		t.Fatal(err)
	}
	// A child that could not dial before may log that once more, without another try.
	for began, code := time.Now(), -1; code != cli.ExitOK && time.Since(began) < time.Minute; {
		_, code = h.muster("tasks")
	}
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	if seen := f.Stats(); seen.Commands != hosts {
		t.Errorf("%d commands on %d hosts", seen.Commands, hosts)
	}
	m.cmd.Process.Signal(syscall.SIGTERM)
	m.end()
	away, back := requests(m.log.String(), noAnswer), requests(m.log.String(), answers)
	if len(away) < 8 || !slices.Equal(away, back) {
		t.Errorf("without an answer: %v, then answered: %v; want the same, at least 8", away, back)
	}
	wantNoOverlap(t, f)
}

func TestAFullRedisTakesResultsAndRefusesSubmits(t *testing.T) {
	t.Parallel()
	const hosts = 24
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newHouse(t, inventory)
	h.config(fourByFour)
	h.master()
	id := h.submit("all", held)
	h.awaitNode(func(n jobs.Node) bool { return jobsInHand(n) == 16 })
	h.redis.Do(t, "CONFIG", "SET", "maxmemory", "1")
	letGo(t, f)
	h.awaitTask(id, func(t jobs.TaskInfo) bool { return t.Outcomes[jobs.Succeeded] >= 16 })

	submit := []string{"run", "exec", "--on", "all", "--arg", "cmd=true", "--detach", "--id", "0123456789"}
	p := h.start(append(submit, "--server", h.url)...)
	if code := p.end(); code != cli.ExitNotAll {
		t.Errorf("a submit to a full Redis: exit %d, want %d", code, cli.ExitNotAll)
	}
	apitest.WantParts(t, "the refusal", p.log.String(), "maxmemory", "0123456789")
	if out, code := h.muster("health"); code != cli.ExitNotAll || !strings.Contains(out, "redis is full") {
		t.Errorf("health: exit %d, %s", code, out)
	}

	h.redis.Do(t, "CONFIG", "SET", "maxmemory", "0")
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	if _, code := h.muster(submit...); code != cli.ExitOK {
		t.Errorf("the same submit when there is room: exit %d", code)
	}
	wantOutcomes(t, h.wait("0123456789"), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	if seen := f.Stats(); seen.Commands != 2*hosts {
		t.Errorf("%d commands for %d jobs", seen.Commands, 2*hosts)
	}
	wantNoOverlap(t, f)
}
