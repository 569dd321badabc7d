package verdict

import (
	"muster/jobs"
	"muster/scripts"
)

// lostSecretsTries bounds the tries of a step whose secrets did not arrive complete.
const lostSecretsTries = 3

// SecretsLost returns the result of a step that did not run because its secrets did not arrive
// complete. ok is false if they did.
func SecretsLost(f Evidence) (r jobs.Result, ok bool) {
	if len(f.Action.Secrets) == 0 || f.Err != nil || f.Result.ExitCode != scripts.SecretsMissing ||
		LastLine(f.Result.Output) != scripts.SecretsLost {
		return r, false
	}
	if f.Memory.Again+1 < lostSecretsTries {
		return f.anew(f.Policy.Delay, scripts.SecretsLost), true
	}
	return f.End(jobs.Failed, jobs.ClassTransient, scripts.SecretsLost), true
}
