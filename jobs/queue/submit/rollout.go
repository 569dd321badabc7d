package submit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/jobs"
)

// checkRollout returns an error if the numbers of a rollout do not fit the task. The script that
// hands jobs out enforces a rule, so a rule covers one zone only.
func checkRollout(t jobs.Task, hosts map[string][]string) error {
	r, n := t.Spec.Rollout, 0
	for _, size := range r.Waves {
		if size < 1 {
			return fmt.Errorf("waves %v: want at least one host in each", r.Waves)
		}
		n += size
	}
	switch {
	case len(hosts) > 1:
		return fmt.Errorf("a task with a rule or waves is of one zone, not of %s",
			strings.Join(slices.Sorted(maps.Keys(hosts)), ", "))
	case len(r.Waves) > 0 && n != t.Total, len(r.Waves) > jobs.WavesMax:
		return fmt.Errorf("%d waves of %d hosts together: want %d hosts, in at most %d waves",
			len(r.Waves), n, t.Total, jobs.WavesMax)
	case r.Breaker.Failures < 0, r.Breaker.Failures > jobs.BreakerMax:
		return fmt.Errorf("breaker of %d failures: want 1 to %d", r.Breaker.Failures, jobs.BreakerMax)
	case !t.Guarded:
		return errors.New("a task with a rule is guarded")
	}
	return nil
}

// indexed encodes a rollout for lists; empty if there is none.
func indexed(r *jobs.Rollout) (string, error) {
	if r == nil {
		return "", nil
	}
	short := *r
	short.Check = nil
	text, err := json.Marshal(short)
	return string(text), err
}
