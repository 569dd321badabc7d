package draft

import (
	"encoding/json"
	"errors"

	"muster/jobs"
	"muster/scripts"
)

// CheckOf returns the spec of the check of a task: what its runbook looks at before its first
// change. It fails if there is nothing of that kind, or if the task has secrets: those are sealed
// for that task alone.
func CheckOf(of jobs.Spec) (jobs.Spec, error) {
	var f scripts.Frozen
	if err := json.Unmarshal(of.Action, &f); err != nil {
		return jobs.Spec{}, err
	}
	if len(f.Values.Secrets)+len(f.Values.Plain) > 0 {
		return jobs.Spec{}, errors.New("a task with secret arguments cannot be checked by its lane: " +
			"they are sealed for that task alone")
	}
	f, err := f.Only(scripts.OnlyCheck)
	if err != nil {
		return jobs.Spec{}, err
	}
	return specOf(f)
}
