package codec

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"muster/jobs"
)

// GateField returns the field of a task that holds the answer at a gate of a job.
func GateField(id jobs.ID, step int) string {
	return "gate:" + strconv.Itoa(step) + ":" + id.Host()
}

// ProofField returns the field of a task that holds the signature of an answer at a gate. It is for
// this answer alone, so that of two answers at once each keeps its own.
func ProofField(id jobs.ID, step int, a jobs.GateAnswer) string {
	sum := sha256.Sum256([]byte(string(a.Word) + " " + a.Note))
	return "proof:" + strconv.Itoa(step) + ":" + id.Host() + ":" + hex.EncodeToString(sum[:8])
}

// GateTurn returns the call that answers a gate.
func GateTurn(id jobs.ID, step int, a jobs.GateAnswer) Turn {
	return Turn{Verb: "gate", Object: string(id), Number: strconv.Itoa(step),
		Note: string(a.Word) + " " + a.Note}
}
