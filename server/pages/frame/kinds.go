package frame

import "muster/jobs"

// outcomeKinds has the outcomes with a colour and a shape of their own.
var outcomeKinds = map[jobs.Outcome]CellKind{jobs.Succeeded: {Fill: "good"},
	jobs.Failed: {Fill: "bad", Mark: "cross"}, jobs.Timeout: {Fill: "bad", Mark: "half"},
	jobs.Unreachable: {Fill: "warn", Mark: "dot"}, jobs.RolledBack: {Fill: "warn", Mark: "half"},
	jobs.Unknown: {Fill: "odd", Mark: "cross"}}

// OutcomeKind returns the kind of the cells of an outcome.
func OutcomeKind(o jobs.Outcome) CellKind {
	k, known := outcomeKinds[o]
	if !known {
		k = CellKind{Fill: "none", Mark: "dot"}
	}
	k.Name = PlainName(string(o))
	return k
}

// Signed returns the name of an outcome for people, with its sign.
func Signed(outcome string) string {
	if s := shapes[outcome]; s != "" {
		return s + " " + PlainName(outcome)
	}
	return outcome
}
