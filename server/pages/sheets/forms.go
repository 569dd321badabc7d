package sheets

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"
	"unicode"

	"muster/fleet/remote"
)

// csvForm writes RFC 4180: a line for each row, the heads of the columns first.
var csvForm = form{ending: ".csv", kind: "text/csv; charset=utf-8; header=present",
	begin: writeCells,
	row:   func(w io.Writer, _ int, r row) error { return writeCells(w, r.cells) },
	end:   func(io.Writer) error { return nil }}

// writeCells writes a line of cells.
func writeCells(w io.Writer, cells []string) error {
	safe := make([]string, len(cells))
	for i, one := range cells {
		safe[i] = cell(one)
	}
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(safe); err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// formulas begin a cell that a spreadsheet computes instead of showing it. The wide ones count as
// the others where people write Japanese.
const formulas = "=+-@＝＋－＠"

// cell returns a text for a cell. Texts of hosts are hostile: control characters become escapes,
// and a text that a spreadsheet would take for a formula gets an apostrophe in front.
func cell(text string) string {
	text = remote.Printable([]byte(text))
	first := strings.TrimLeftFunc(text, unicode.IsSpace)
	if first != "" && strings.ContainsRune(formulas, []rune(first)[0]) ||
		strings.HasPrefix(text, "\t") {
		return "'" + text
	}
	return text
}

// jsonForm writes a list of JSON, a line for each thing as the API gives it.
var jsonForm = form{ending: ".json", kind: "application/json",
	begin: func(w io.Writer, _ []string) error {
		_, err := io.WriteString(w, "[")
		return err
	},
	row: func(w io.Writer, n int, r row) error {
		b, err := json.Marshal(r.whole)
		if err != nil {
			return err
		}
		sep := ",\n"
		if n == 0 {
			sep = "\n"
		}
		_, err = w.Write(append([]byte(sep), b...))
		return err
	},
	end: func(w io.Writer) error {
		_, err := io.WriteString(w, "\n]\n")
		return err
	}}
