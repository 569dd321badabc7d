package server

import (
	"strings"

	"muster/jobs"
	"muster/server/web"
)

// loggedMax bounds the arguments of a task in a line of the log.
const loggedMax = 1000 // bytes

// oneLine shows line breaks.
var oneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// ranWords returns the runbook and the arguments of a task, for a line of the log.
func ranWords(t jobs.TaskInfo) []any {
	words := []any{"runbook", t.Runbook}
	if r := t.Ran; r != nil {
		words = append(words, "version", r.Version, "sha256", r.SHA256, "arguments",
			jobs.Brief(oneLine.Replace(r.Text()), loggedMax))
	}
	return append(words, "on", web.Clip(t.On), "hosts", t.Total)
}
