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
	c.Flags().BoolVar(&f.Staged, "staged", false, "prepare it on all hosts first, and do it on all "+
		"at once (--at), if no more than --max-failed (default 0) could not be prepared")
	c.Flags().BoolVar(&f.RollBack, "roll-back", false, "take it back on all hosts if more than "+
		"--max-failed (default 0) fail")
}

// rolloutFlags are the flags of run that control waves and failures.
type rolloutFlags struct {
	jobs.RolloutAsk
	waves      string
	healthArgs []string
}

func (f *rolloutFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.MaxFailed, "max-failed", "", "stop when more have failed: `N or P%` of the "+
		"hosts; failed and begun together are never more than that and one")
	fl.BoolVar(&f.UnreachableOK, "unreachable-ok", false,
		"a host that is not reached is no failure")
	fl.StringVar(&f.Breaker, "breaker", "",
		"stop when so many fail within a time: `N/T`, such as 3/10m")
	fl.StringVar(&f.Canary, "canary", "", "`N` hosts first, then the others")
	fl.StringVar(&f.waves, "waves", "", "how many hosts have begun with each wave, as numbers or "+
		"shares: `1,10%,50%,100%`")
	fl.StringVar(&f.Soak, "soak", "", "wait so long after each wave: a `time` such as 5m")
	fl.StringVar(&f.Health, "health", "", "a `runbook` that must succeed on all hosts so far before "+
		"the next wave")
	fl.StringArrayVar(&f.healthArgs, "health-arg", nil,
		"argument of the health check, `name=value`; can be repeated")
	fl.BoolVar(&f.Gate, "gate", false, "a person opens each wave after the first: muster rollout next")
	f.addChain(c)
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
