package submit

import (
	"errors"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/complete"
	"muster/jobs"
)

// addChain adds the flags of run for tasks that precede or follow a task.
func (f *rolloutFlags) addChain(c *cobra.Command) {
	c.Flags().BoolVar(&f.Staged, "staged", false, "prepare all hosts first, and act on all at once "+
		"(--at), unless the preparation failed on more than --max-failed (default 0)")
	c.Flags().BoolVar(&f.RollBack, "roll-back", false, "undo it on all hosts if more than "+
		"--max-failed (default 0) fail")
}

// rolloutFlags are the flags of run that control waves and failures.
type rolloutFlags struct {
	jobs.RolloutAsk
	waves      string
	healthArgs []string
}

// AddWaves adds the flags that control waves and failures.
func (f *RunFlags) AddWaves(c *cobra.Command) { f.rollout.add(c) }

func (f *rolloutFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.MaxFailed, "max-failed", "", "stop when more hosts have failed: `N or P%` of "+
		"all; the jobs that run or have failed are never more than that plus one")
	fl.BoolVar(&f.UnreachableOK, "unreachable-ok", false,
		"do not count a host that is not reached as a failure")
	fl.StringVar(&f.Breaker, "breaker", "",
		"stop when so many fail within a time: `N/T`, such as 3/10m")
	fl.StringVar(&f.Canary, "canary", "", "`N` hosts first, then the others")
	fl.StringVar(&f.waves, "waves", "", "hosts that may have begun in each wave and before, as "+
		"numbers or shares: `1,10%,50%,100%`")
	fl.StringVar(&f.Soak, "soak", "", "`time` to wait after each wave, such as 5m")
	fl.StringVar(&f.Health, "health", "", "a `runbook` that must succeed on all hosts so far before "+
		"the next wave")
	fl.StringArrayVar(&f.healthArgs, "health-arg", nil,
		"argument of the health check, `name=value`; can be repeated")
	fl.BoolVar(&f.Gate, "gate", false, "a person opens each wave after the first: muster rollout next")
	cli.CompleteFlagWith(c, "health", complete.Runbooks)
}

// ask returns the rollout to ask for; nil: no flag was given.
func (f *rolloutFlags) ask() (*jobs.RolloutAsk, error) {
	a := f.RolloutAsk
	if f.waves != "" {
		a.Waves = strings.Split(f.waves, ",")
	}
	var errs []error
	given := map[string]bool{}
	for _, text := range f.healthArgs {
		name, value, err := cli.SplitArg("--health-arg", text, given)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if a.HealthArgs == nil {
			a.HealthArgs = map[string]string{}
		}
		a.HealthArgs[name] = value
	}
	if reflect.ValueOf(a).IsZero() {
		return nil, errors.Join(errs...)
	}
	return &a, errors.Join(errs...)
}
