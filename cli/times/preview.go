package times

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/windows"
)

// previewMost bounds the occurrences shown before an approval; the server counts all.
const previewMost = 5

// preview is the content of an approval, in the words of people at the place of the window.
type preview struct {
	window api.WindowInfo
	covers []api.Occurrence
	body   api.ApproveRequest
}

// askPreview asks what an approval of a window would cover.
func askPreview(ctx context.Context, c *cli.Client, name string, body api.ApproveRequest) (preview,
	error) {
	p := preview{body: body}
	l, err := windowList(ctx, c)
	if err != nil {
		return p, err
	}
	i := slices.IndexFunc(l.Windows, func(w api.WindowInfo) bool { return w.Name == name })
	if i < 0 {
		return p, fmt.Errorf("there is no window %q; `muster windows ls` lists them", name)
	}
	p.window = l.Windows[i]
	from := body.From.Time
	for _, t := range body.Starts {
		if from.IsZero() || t.Before(from) {
			from = t.Time
		}
	}
	var next api.OccurrenceList
	q := url.Values{"count": {strconv.Itoa(occurrencesMost)},
		"from": {from.UTC().Format(time.RFC3339)}}
	if err := c.Get(ctx, "/v1/windows/"+url.PathEscape(name)+"/next", q, &next); err != nil {
		return p, err
	}
	for _, o := range next.Occurrences {
		if p.has(o) {
			p.covers = append(p.covers, o)
		}
	}
	return p, nil
}

// occurrencesMost bounds the occurrences in one answer of the server.
const occurrencesMost = 1000

func (p preview) has(o api.Occurrence) bool {
	if len(p.body.Starts) > 0 {
		return slices.ContainsFunc(p.body.Starts, func(t jobs.Time) bool { return o.Start.Equal(t.Time) })
	}
	return !o.Start.Before(p.body.From.Time) && !o.End.After(p.body.Until.Time)
}

func (p preview) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, for %s: %s", cli.Cell(p.window.Name), cli.Cell(p.window.For),
		cli.Count(len(p.covers), "occurrence"))
	if len(p.covers) == occurrencesMost {
		b.WriteString(" and more")
	}
	if z, err := windows.LoadZone(p.window.Zone); err == nil && len(p.body.Starts) == 0 {
		at := func(t time.Time) string {
			return t.In(z.Location(t)).Format("Mon 2006-01-02 15:04 -07:00")
		}
		fmt.Fprintf(&b, " from %s to %s", at(p.body.From.Time), at(p.body.Until.Time))
	}
	fmt.Fprintf(&b, " (%s)\n", cli.Cell(p.window.Zone))
	for i, o := range p.covers {
		if i == previewMost && len(p.covers) > previewMost+1 {
			fmt.Fprintf(&b, "  … %d more, the last at %s\n", len(p.covers)-i,
				cli.Cell(p.covers[len(p.covers)-1].LocalStart))
			break
		}
		fmt.Fprintf(&b, "  %s to %s, %s\n", cli.Cell(o.LocalStart), cli.Cell(o.LocalEnd),
			cli.Span(cli.Seconds(o.Seconds)))
	}
	return b.String()
}

// fromTerminal reports whether a person is at the other end of an input.
func fromTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// consents asks a person, and accepts only a yes.
func consents(in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, err := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	word := strings.ToLower(strings.TrimSpace(line))
	return word == "y" || word == "yes", nil
}
