package draft

import (
	"encoding/json"
	"fmt"
	"strings"

	"muster/api"
	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/quarantine"
	"muster/scripts"
	"muster/server/fault"
	"muster/server/stock"
)

// A Choice is the part of a task that is to be done again.
type Choice struct {
	Of    jobs.TaskID
	Spec  jobs.Spec
	Hosts []string // whose jobs ended in one of the ways asked for
	Open  int      // jobs that have not ended

	Earlier []jobs.Again // tasks that do hosts again, which Hosts leaves out for that
}

// Again makes the draft of a retry, or returns every mistake in it. It changes nothing. The
// answer says Already if other tasks do all of it again.
func Again(b api.RetryRequest, c Choice, in Setting) (Draft, api.Retried, []error) {
	answer := api.Retried{Open: c.Open, Earlier: Earlier(c.Earlier)}
	if in.Scene.Stock == nil {
		return Draft{}, answer, fault.Each("path.task", stock.ErrNone)
	}
	var frozen scripts.Frozen
	if err := json.Unmarshal(c.Spec.Action, &frozen); err != nil {
		return Draft{}, answer, fault.Each("path.task", fmt.Errorf("task %s: %w", c.Of, err))
	}
	found, gone := in.Scene.Stock.Find(c.Hosts)
	if Checks(frozen) {
		in.Scene = in.Scene.ForCheck()
	}
	hosts, drained := in.Scene.Undrained(found)
	answer.LeftOut.Drained = fleet.Fold(drained)
	if b.SkipMissing {
		answer.Skipped = fleet.Fold(gone)
	}
	// The same order, given before, left hosts out: they are no mistake now.
	if len(hosts) == 0 && len(c.Earlier) > 0 && (len(gone) == 0 || b.SkipMissing) {
		answer.Already = true
		return Draft{}, answer, nil
	}
	wrong := cannotRetry(b, c, gone, drained)
	if aside := in.Scene.Aside(found); len(hosts) == 0 && len(aside) > 0 && len(wrong) > 0 {
		wrong = append(wrong, fault.At("path.task", "in quarantine are %s: %s",
			wording.ClipList(fleet.Fold(aside)), quarantine.How))
	}
	wrong = append(wrong, fault.Each("path.task", checkHosts(frozen, hosts))...)
	wrong = append(wrong, checkNeeds(c.Spec.Needs, hosts, in.Scene.Stock)...)
	if len(wrong) > 0 {
		return Draft{}, answer, wrong
	}
	spec := c.Spec
	spec.RetryOf, spec.Reason, spec.Ran = c.Of, strings.TrimSpace(b.Reason), ranOf(frozen)
	// A key says which content is newer. The retry has the content of the old
	// task, and must not end what newer ones have queued.
	spec.Supersedes = ""
	spec.Schedule, spec.Tick = "", jobs.Time{} // it is no tick
	spec.Override = ""                         // the reason was that of the old task
	spec.Rollout = rollAgain(spec.Rollout, hosts)
	if said, _ := ParseExpect(b.Expect); said > 0 { // it was found right
		spec.Expect, spec.Unsaid = said, false
	}
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	spec.On = fleet.Fold(names)
	p := in.Draft(jobs.Task{ID: jobs.TaskID(b.ID), Spec: spec, Again: b.Again}, hosts)
	p.Blobs, p.Frozen = frozen.Blobs(), frozen
	p.LeftOut.Drained, p.Held = answer.LeftOut.Drained, in.Scene.WhyAside(drained)
	return p, answer, nil
}

// cannotRetry returns the mistake in a choice of hosts, of which some are gone from the
// inventory, and some are drained.
func cannotRetry(b api.RetryRequest, c Choice, gone, drained []string) []error {
	one := func(location, format string, args ...any) []error {
		return []error{fault.At(location, format, args...)}
	}
	switch n := len(c.Hosts); {
	case n == 0:
		return one("body.outcomes", "%s", nothingToRetry(c.Of, b.Outcomes, c.Open))
	case len(gone) > 0 && !b.SkipMissing:
		return one("body.skip_missing", "%d of %d hosts are in the inventory no more: %s; leave them "+
			"out with skip_missing", len(gone), n, wording.ClipList(fleet.Fold(gone)))
	case len(gone)+len(drained) == n && len(drained) > 0:
		return one("path.task", "all of these hosts are drained: %s; undrain them",
			wording.ClipList(fleet.Fold(drained)))
	case len(gone) == n:
		return one("body.skip_missing", "none of the %d hosts is in the inventory any more: %s", n,
			wording.ClipList(fleet.Fold(gone)))
	}
	return nil
}

func nothingToRetry(of jobs.TaskID, as []jobs.Outcome, open int) string {
	text := fmt.Sprintf("no job of task %s is known to have ended %s", of, wording.Join(as, " or "))
	if open > 0 {
		return text + fmt.Sprintf("; %d have not ended, and only those that have can be done again",
			open)
	}
	return text + "; how a job ended is kept for a day"
}

// Earlier shows the earlier retries of some hosts.
func Earlier(list []jobs.Again) []api.Earlier {
	var out []api.Earlier
	for _, a := range list {
		out = append(out, api.Earlier{Task: a.Task, Operator: a.Operator, Proven: a.Proven, At: a.At,
			Hosts: fleet.Fold(a.Hosts), Count: len(a.Hosts), Open: a.Open, Outcomes: a.Outcomes})
	}
	return out
}
