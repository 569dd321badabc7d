package cli

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Grid is a table: headings, and rows with the same number of cells. A heading that begins with >
// marks a column of numbers, which is aligned right.
type Grid struct {
	head []string
	Rows [][]string
}

// NewGrid makes a table with these headings.
func NewGrid(head ...string) Grid { return Grid{head: head} }

// Add appends a row. Text of a host or a server must have gone through Cell.
func (g *Grid) Add(cells ...string) { g.Rows = append(g.Rows, cells) }

// Render draws the table, at most width columns wide; 0: no limit.
func (g Grid) Render(width int, headings bool) string {
	t := table.NewWriter()
	t.SetStyle(table.Style{
		Box:     table.BoxStyle{PaddingRight: "  "},
		Options: table.OptionsNoBordersAndSeparators,
	})
	t.SuppressTrailingSpaces()
	head, columns := make(table.Row, len(g.head)), make([]table.ColumnConfig, len(g.head))
	for i, h := range g.head {
		name, number := strings.CutPrefix(h, ">")
		head[i], columns[i] = name, table.ColumnConfig{Number: i + 1}
		if number {
			columns[i].Align, columns[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	t.SetColumnConfigs(columns)
	if headings {
		t.AppendHeader(head)
	}
	for _, cells := range g.Rows {
		row := make(table.Row, len(cells))
		for i, c := range cells {
			row[i] = c
		}
		t.AppendRow(row)
	}
	var b strings.Builder
	for line := range strings.Lines(t.Render() + "\n") {
		b.WriteString(Fit(strings.TrimSuffix(line, "\n"), width) + "\n")
	}
	return b.String()
}

// Details shows one thing: one line for each name and value. Empty values are left out.
func Details(pairs ...[2]string) string {
	var b strings.Builder
	width := 0
	for _, p := range pairs {
		if p[1] != "" {
			width = max(width, len(p[0]))
		}
	}
	for _, p := range pairs {
		if p[1] != "" {
			b.WriteString(text.Pad(p[0], width+2, ' ') + p[1] + "\n")
		}
	}
	return b.String()
}

// Fit cuts a text to a number of columns; 0: no limit.
func Fit(s string, columns int) string {
	if columns <= 0 {
		return s
	}
	return text.Snip(s, columns, "…")
}
