package codec

import (
	"strconv"
	"strings"

	"muster/jobs"
)

// The proof of a node stands behind the ledger of a result and of a record, so that the scripts
// pass both on as one word.
const (
	proofMark   = "~"
	settledMark = "~~" // before the proof of an end that was not known before
)

func withProof(spent, proof string) string {
	if proof == "" {
		return spent
	}
	return spent + proofMark + proof
}

// cutProof returns a ledger and the proof behind it.
func cutProof(text string) (spent string, p proof) {
	spent, p.Proof, _ = strings.Cut(text, proofMark)
	p.Proof, p.Settled = strings.CutPrefix(p.Proof, proofMark)
	return spent, p
}

// proof is that of the node which said how a job ended; empty: none.
type proof struct {
	Proof   string
	Settled bool // the end was not known before
}

// Kinds of what nodes say of a job, by the events that tell of it. Settled is an end that was not
// known before.
const (
	SaidEnd     = "end"
	SaidSettled = "settle"
	SaidStep    = "step"
)

// EndWords returns all that the proof of an end covers, as a record has it. who is node and slot.
func EndWords(who string, r jobs.Result) []string {
	return []string{string(r.Outcome), string(r.Class), exitText(r.ExitCode), OneLine(r.Error),
		OneLine(r.Note), r.Spent, who}
}

// EndWords returns the words of the end of a job, for the proof of the worker that reported it.
func (r Record) EndWords() []string {
	return []string{string(r.End.Outcome), string(r.End.Class), strings.Trim(r.End.Exit, "-"),
		r.End.Err, r.End.Note, r.End.Spent, r.Node}
}

// SettledWords is EndWords for an end that was not known before. The script writes the note.
func SettledWords(end jobs.Result) []string {
	return []string{string(end.Outcome), string(end.Class), exitText(end.ExitCode), OneLine(end.Error)}
}

// SettledWords is EndWords for an end that was not known before.
func (r Record) SettledWords() []string { return r.EndWords()[:4] }

// AgainWords returns all that the proof of a result covers that does not end its job, as its event
// has it.
func AgainWords(r jobs.Result) []string { return []string{OneLine(r.Error)} }

// StepWords returns all that the proof of a step covers that begins.
func StepWords(step int) []string { return []string{strconv.Itoa(step)} }

func exitText(code *int) string {
	if code == nil {
		return ""
	}
	return strconv.Itoa(*code)
}
