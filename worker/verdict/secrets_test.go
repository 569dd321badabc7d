package verdict

import (
	"testing"

	"muster/jobs"
	"muster/scripts"
)

func TestAStepWhoseSecretsNeverArriveCompleteFails(t *testing.T) {
	t.Parallel()
	f := Evidence{Step: 1, Steps: 3, Action: scripts.Action{Name: "use", Secrets: []string{"pw"}},
		Memory: Memory{Again: lostSecretsTries - 1}}
	f.Result.ExitCode, f.Result.Output.Head = scripts.SecretsMissing, []byte(scripts.SecretsLost)
	r, ok := SecretsLost(f)
	if !ok || r.Outcome != jobs.Failed || r.Class != jobs.ClassTransient {
		t.Errorf("%+v, %v", r, ok)
	}
}
