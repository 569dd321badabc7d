package codec

import (
	"strconv"

	"muster/jobs"
)

// GateField returns the field of a task that holds the answer at a gate of a job.
func GateField(id jobs.ID, step int) string {
	return "gate:" + strconv.Itoa(step) + ":" + id.Host()
}

// GateTurn returns the call that answers a gate.
func GateTurn(id jobs.ID, step int, a jobs.GateAnswer) Turn {
	return Turn{Verb: "gate", Object: string(id), Number: strconv.Itoa(step),
		Note: string(a.Word) + " " + a.Note}
}
