package main

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/dnstest"
	"muster/testkit/sshtest"
)

// rollover is one rollover of a key, on a host of its own.
type rollover struct {
	name  string // of the host
	key   string // zsk or ksk
	start func(testing.TB, dnstest.Options) *dnstest.Lab
	more  []string // arguments of the command

	lab   *dnstest.Lab
	watch *dnstest.Watcher
	task  jobs.TaskID
}

// args returns the arguments of the runbooks dnssec and dnssec-status.
func (r *rollover) args() []string {
	kind := "bind"
	if r.lab.Primary.Control == "" {
		kind = "knot"
	}
	var args []string
	for name, v := range map[string]string{"zone": dnstest.Zone, "server": kind,
		"config": r.lab.Primary.Config, "rndc_config": r.lab.Primary.Control, "primary": r.lab.Primary.At(),
		"secondaries": r.lab.Secondary.At(), "parents": r.lab.Parent.At()} {
		args = append(args, "--arg", name+"="+v)
	}
	return args
}

// start submits the rollover.
func (h *house) roll(r *rollover, more ...string) jobs.TaskInfo {
	h.t.Helper()
	args := append([]string{"run", "dnssec", "--on", r.name, "--arg", "key=" + r.key, "--arg", "every=2s",
		"--arg", "grace=1m", "--arg", "ds_limit=2m"}, r.args()...)
	var t jobs.TaskInfo
	h.query(&t, append(args, more...)...)
	return t
}

// job returns the only job of the rollover.
func (r *rollover) job() jobs.ID { return jobs.NewID(r.task, r.name) }

// said waits until the job's transcript matches a pattern, and returns its first group.
func (h *house) said(r *rollover, pattern string) string {
	h.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	late := time.After(2 * time.Minute)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		out, _ := h.muster("logs", string(r.job()))
		if m := re.FindStringSubmatch(out); m != nil {
			return m[1]
		}
		select {
		case <-late:
			h.t.Fatalf("nothing in what %s said matches %s:\n%s", r.job(), pattern, out)
		case <-tick.C:
		}
	}
}

// watched checks that a rollover waits for its DS: in its log, and in the view of the zone.
func (h *house) watched(r *rollover) {
	h.t.Helper()
	h.said(r, `(the parent has no DS for the key)`)
	var t jobs.TaskInfo
	h.query(&t, append([]string{"run", "dnssec-status", "--on", r.name, "--wait"}, r.args()...)...)
	wantOutcomes(h.t, t, map[jobs.Outcome]int{jobs.Succeeded: 1})
	out, _ := h.muster("logs", string(jobs.NewID(t.Task, r.name)))
	if !strings.Contains(out, "validates everywhere; a rollover is under way") {
		h.t.Errorf("the status of the zone: %s", out)
	}
}

// openTooEarly acts as a person who opens the gate before the parent has the DS: the runbook
// notices that, and does not believe it.
func (h *house) openTooEarly(r *rollover, ds string) {
	h.t.Helper()
	j := h.awaitGate(r.job())
	if !strings.Contains(j.Gate.Question, ds) {
		h.t.Errorf("a person is asked %q, without %s", j.Gate.Question, ds)
	}
	if out, code := h.muster("gate", "open", string(j.ID), "--reason", "it surely is"); code != 0 {
		h.t.Errorf("exit %d: %s", code, out)
	}
	h.said(r, `(a person opened the gate, but the parent has no DS for the key)`)
}

// awaitGate reads a job until it waits at a gate.
func (h *house) awaitGate(id jobs.ID) jobs.JobInfo {
	h.t.Helper()
	for late, tick := time.After(2*time.Minute), time.Tick(commandEvery); ; {
		var j jobs.JobInfo
		if h.query(&j, "job", string(id)); j.Gate != nil {
			return j
		}
		select {
		case <-late:
			h.t.Fatalf("job %s waits at no gate: %+v", id, j)
		case <-tick:
		}
	}
}

func TestKeysAreRolledAsManyShortAttempts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: four rollovers on real servers")
	}
	t.Parallel()
	all := []*rollover{
		{name: "bind-zsk", key: "zsk", start: dnstest.StartBIND},
		{name: "bind-ksk", key: "ksk", start: dnstest.StartBIND},
		{name: "knot-zsk", key: "zsk", start: dnstest.StartKnot},
		{name: "knot-ksk", key: "ksk", start: dnstest.StartKnot, more: []string{"--arg", "ds=person"}},
	}
	var inventory strings.Builder
	inventory.WriteString("hosts:\n")
	var labs sync.WaitGroup
	for _, r := range all {
		s := sshtest.StartSSHD(t, sshtest.Options{})
		fmt.Fprintf(&inventory, "  - {name: %s, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
			r.name, s.Address, s.Port, s.User, s.Key, s.HostKey)
		labs.Go(func() { r.lab = r.start(t, dnstest.Options{}) })
	}
	labs.Wait()
	h := newHouse(t, inventory.String())
	h.config(map[string]any{"children": 1}) // a waiting job must not hold the child
	h.master()

	for _, r := range all {
		r.watch = r.lab.Watch(t)
		r.task = h.roll(r, append(r.more, "--detach")...).Task
	}
	for _, r := range all {
		if r.key == "ksk" {
			ds := h.said(r, `^ds=(.* IN DS .*)$`)
			// All rollovers are under way with only one child, and it has time for more on the same host:
			// for a second rollover, which is refused.
			second := h.roll(r, "--wait")
			if j := h.jobs(second.Task)[0]; j.Outcome != jobs.Failed || j.Class != jobs.ClassUser {
				t.Errorf("a second rollover on %s: %+v", r.name, j)
			}
			if r.more != nil {
				h.openTooEarly(r, ds)
			}
			h.watched(r)
			r.lab.Delegate(ds)
		}
	}
	for _, r := range all {
		h.muster("task", string(r.task), "--wait")
		var j jobs.JobInfo
		h.query(&j, "job", string(r.job()))
		out, _ := h.muster("logs", string(r.job()))
		least := 2 // a busy child may return only after the wait is over
		if r.key == "ksk" {
			least = 4 // the DS is published during the wait
		}
		if j.Outcome != jobs.Succeeded || j.Attempt < least || !strings.Contains(out, "was rolled from the key") {
			t.Errorf("%s: %+v\n%s", r.name, j, out)
		}
		t.Logf("%s: %d attempts in %s", r.name, j.Attempt, j.Finished.Sub(j.Started.Time))
		seen, broken := r.watch.End()
		if len(broken) > 0 {
			t.Errorf("%s: the resolver saw %v: %q", r.name, seen, broken)
		}
	}
}
