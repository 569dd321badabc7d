package approvals

import (
	"encoding/json"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/internal/diff"
)

const (
	// diffContext is the number of lines around each difference of two runbooks.
	diffContext = 2
	// diffMax bounds the lines of a difference that are shown.
	diffMax = 80
)

// lastRun says how the runbook of an order differs from that of its last run. The server tells of
// the last run, and the other side is read from the bytes of the order.
func (p plan) lastRun() (words, changes string) {
	last := p.said.Last
	if last == nil {
		return "", ""
	}
	words = "task " + cli.Cell(string(last.Task)) + " of " + cli.Moment(last.At) +
		", as the server says: "
	if last.Hash == p.frozen.Hash {
		return words + "the same runbook", ""
	}
	words += "another text of the runbook, sha256 " + cli.OrDash(cli.Cell(last.Hash))
	if len(last.Plan) == 0 {
		return words + "; its steps are kept no more", ""
	}
	return words, p.stepChanges(last)
}

// stepChanges returns the difference of the steps, line by line, as JSON.
func (p plan) stepChanges(last *api.HeldLast) string {
	now, err := json.Marshal(p.frozen.Steps)
	if err != nil {
		return ""
	}
	var b strings.Builder
	lines := 0
	for _, h := range diff.Texts(indented(last.Plan), indented(now), diffContext) {
		for _, l := range append([]diff.Line{{Text: h.String()}}, h.Lines...) {
			if lines++; lines > diffMax {
				return b.String() + "  … more: muster approvals show --order\n"
			}
			line := cli.Cell(strings.TrimSuffix(l.Text, "\n"))
			if l.Op != 0 {
				line = string(rune(l.Op)) + line
			}
			b.WriteString("  " + line + "\n")
		}
	}
	return b.String()
}

// indented returns JSON with a line for each value; a text that is none as it is.
func indented(text []byte) []byte {
	var value any
	if json.Unmarshal(text, &value) != nil {
		return text
	}
	out, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return text
	}
	return append(out, '\n')
}
