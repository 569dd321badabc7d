package sim

import (
	"fmt"
	"strings"
	"time"
)

// A plot says which faults there are, each by the job, the attempt and the call that it strikes. A
// fault strikes once.
type plot struct {
	faults []*plotted
	names  map[string]string // of tasks, to their ids
}

type plotted struct {
	kind  fault
	job   string // task:host
	of    string // "attempt 1 checkpoint"
	after time.Duration
	used  bool
}

// strikes reports whether a fault strikes a call, and after which time.
func (p *plot) strikes(kind fault, of string) (after time.Duration, strikes bool) {
	for _, f := range p.faults {
		task, host, _ := strings.Cut(f.job, ":")
		if !f.used && f.kind == kind && of == fmt.Sprintf("%s:%s %s", p.names[task], host, f.of) {
			f.used = true
			return f.after, true
		}
	}
	return 0, false
}

// mishaps are the faults by their names in a scenario. The call decides which of several kills a child.
var mishaps = map[string][]fault{
	"request lost":    {requestLost},
	"reply lost":      {replyLost},
	"doubled":         {duplicated},
	"child killed":    {killBehindCall, killStarted, killAtWork, killReporting},
	"killed after":    {killAfterWork},
	"line cut":        {lineCut},
	"not reached":     {notReached},
	"fails":           {stepFails},
	"not ready":       {notWell},
	"cannot be ended": {goesOn},
}

// plan adds a fault, as a line of a scenario describes it:
//
//	a:fw00 attempt 1 step 0: child killed after 5s
func (p *plot) plan(line string) error {
	where, what, ok := strings.Cut(line, ": ")
	job, of, found := strings.Cut(where, " ")
	name, wait, timed := strings.Cut(what, " after ")
	if !ok || !found {
		return fmt.Errorf("want task:host attempt N CALL: FAULT [after TIME], not %q", line)
	}
	after := time.Duration(0)
	if timed {
		var err error
		if after, err = time.ParseDuration(wait); err != nil {
			return err
		}
	}
	kinds, known := mishaps[name]
	if !known {
		return fmt.Errorf("no fault is called %q", name)
	}
	for _, kind := range kinds {
		p.faults = append(p.faults, &plotted{kind: kind, job: job, of: of, after: after})
	}
	return nil
}

// unused lists the faults that never struck, of those of which no other kind did.
func (p *plot) unused() (list []string) {
	struck := map[string]bool{}
	for _, f := range p.faults {
		struck[f.job+f.of] = struck[f.job+f.of] || f.used
	}
	for _, f := range p.faults {
		if !struck[f.job+f.of] {
			list = append(list, f.job+" "+f.of)
			struck[f.job+f.of] = true
		}
	}
	return list
}
