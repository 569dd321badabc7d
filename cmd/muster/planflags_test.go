package main

import (
	"testing"

	"github.com/spf13/pflag"

	"muster/cli/ops"
	"muster/cli/tasks"
)

// notPlanned maps the flags of run that plan does not take to the reasons.
var notPlanned = map[string]string{
	"id": "plan submits nothing", "wait": "nothing runs", "detach": "nothing runs",
	"dry-run":    "a plan is one",
	"supersedes": "it ends jobs of others, and the plan shows the queue as it is",
	"staged":     "a chain of tasks", "roll-back": "a chain of tasks",
	"hold": "people decide when it begins", "break-glass": "as sign", "sign": "it signs what is submitted",
}

// Every flag of run on which a task's end depends exists in plan, with the same name and the same
// words.
func TestPlanTakesTheFlagsOfRun(t *testing.T) {
	t.Parallel()
	run, plan := tasks.NewRun().LocalFlags(), ops.NewPlan().LocalFlags()
	run.VisitAll(func(f *pflag.Flag) {
		p := plan.Lookup(f.Name)
		switch why, left := notPlanned[f.Name]; {
		case left && p != nil:
			t.Errorf("plan takes --%s, and the list of what it does not take says: %s", f.Name, why)
		case !left && p == nil:
			t.Errorf("plan lacks --%s", f.Name)
		case !left && (p.Usage != f.Usage || p.Value.Type() != f.Value.Type() || p.DefValue != f.DefValue):
			t.Errorf("--%s differs: %q of run, %q of plan", f.Name, f.Usage, p.Usage)
		}
	})
	for name := range notPlanned {
		if run.Lookup(name) == nil {
			t.Errorf("run has no --%s: take it off the list", name)
		}
	}
	plan.VisitAll(func(f *pflag.Flag) {
		if own := f.Name == "calibrate" || f.Name == "days"; run.Lookup(f.Name) == nil && !own {
			t.Errorf("plan takes --%s, which run does not", f.Name)
		}
	})
}
