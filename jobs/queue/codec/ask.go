package codec

import (
	"strconv"

	"muster/jobs"
)

// AnswerArgs returns the arguments of ask.lua for an answer, with the proof of the node for the
// end; empty: none.
func AnswerArgs(f jobs.Reading, proof string) []any {
	over, began := "", ""
	if f.Over {
		over = "1"
	}
	if f.Began != 0 {
		began = strconv.FormatInt(int64(f.Began), 10)
	}
	args := []any{"answer", string(f.Job), int64(f.Token), string(f.Answer), OneLine(f.Words), began,
		over}
	args = append(args, endArgs(f.End)...)
	if proof != "" {
		args = append(args, settledMark+proof)
	}
	return args
}

// endArgs returns outcome, class, exit code, error, output and note of an end; a nil end is
// unknown.
func endArgs(end *jobs.Result) []any {
	if end == nil {
		return []any{"", "", "", "", "", ""}
	}
	exit := ""
	if end.ExitCode != nil {
		exit = strconv.Itoa(*end.ExitCode)
	}
	return []any{string(end.Outcome), string(end.Class), exit, OneLine(end.Error), SaidOf(*end),
		OneLine(end.Note)}
}
