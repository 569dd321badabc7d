package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
)

func newQueue() *cobra.Command {
	watch := false
	c := &cobra.Command{
		Use:   "queue",
		Short: "Show what waits in each zone, and whose it is",
		Long: `queue shows how many jobs wait in each zone, how late the first of them is, which
tasks they belong to, and when an overloaded queue was last put into a fair order.
QUEUED have never begun. AGAIN run, or wait for another try or for what others have:
a group, a limit, their host. DUE of both could begin now. OLDEST is of QUEUED only.
What a pause laid aside is in none of them; below it is WAITING. Jobs that wait for a
window, the end of a freeze or their place in a jitter are deferred: below stands
how many, of which task, for which window, and when they are due.

With --watch it looks again each second: it draws a picture on a terminal, and
writes a line a zone elsewhere, or a line of JSON with -o json.`,
		Example: `  muster queue
  muster queue --watch
  muster queue --watch -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&watch, "watch", false, "look again each second")
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		if watch {
			return s.watchQueue(ctx)
		}
		zones, err := s.zones(ctx)
		if err != nil {
			return err
		}
		s.banner(ctx)
		if err := s.list(zones, queueGrid(zones, s.colours), nothingWaits); err != nil || s.json {
			return err
		}
		return s.write(s.sharings(zones))
	})
}

const nothingWaits = "there are no zones: nothing was ever submitted, and no node is up"

func (c *client) zones(ctx context.Context) ([]api.Zone, error) {
	var q api.QueueInfo
	err := c.get(ctx, "/v1/queue", nil, &q)
	for i := range q.Zones {
		q.Zones[i].Shares = filled(q.Zones[i].Shares)
		q.Zones[i].Deferred.Appointments = filled(q.Zones[i].Deferred.Appointments)
	}
	return filled(q.Zones), err
}

// eraseScreen clears the terminal and starts at its top.
const eraseScreen = "\x1b[H\x1b[2J"

// watchQueue shows the queue each second until ctx is done.
func (s *session) watchQueue(ctx context.Context) error {
	for {
		zones, err := again(ctx, s.patience, func() ([]api.Zone, error) { return s.zones(ctx) },
			func(err error, _ time.Duration) { s.say("%s", troubleWords(err)) })
		if err != nil {
			return err
		}
		shown, err := s.glance(ctx, zones)
		if err != nil {
			return err
		}
		if err := s.write(shown); err != nil {
			return err
		}
		if !sleep(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// glance is one look at the queue, in the form that suits who looks.
func (s *session) glance(ctx context.Context, zones []api.Zone) (string, error) {
	if s.json {
		return encode(zones, "")
	}
	var b strings.Builder
	if s.outTerm {
		b.WriteString(eraseScreen)
		if len(zones) > 0 {
			b.WriteString(queueGrid(zones, s.colours).render(s.tableWidth(), !s.headless))
		} else {
			b.WriteString(nothingWaits + "\n")
		}
	}
	for _, line := range s.standing(ctx, "") {
		b.WriteString(s.colours.paint(yellow, line) + "\n")
	}
	for _, z := range zones {
		if s.outTerm {
			b.WriteString(s.picture(z))
		} else {
			b.WriteString(moment(jobs.Time{Time: s.now()}) + "  " + zoneLine(z, s.now()) + "\n")
		}
	}
	return b.String(), nil
}

func queueGrid(zones []api.Zone, colours palette) grid {
	g := newGrid("ZONE", ">QUEUED", ">AGAIN", ">DUE", "OLDEST", ">OVERDUE", "NOTE")
	for _, z := range zones {
		if z.Trouble != "" {
			g.add(cell(z.Zone), "?", "?", "?", "?", "?", colours.paint(yellow, cell(z.Trouble)))
			continue
		}
		overdue := "-"
		if z.Overdue > 0 {
			overdue = span(seconds(z.Overdue))
		}
		g.add(cell(z.Zone), num(z.Queued), num(z.Again), num(z.Due), moment(z.Oldest), overdue,
			orDash(colours.paint(yellow, zoneNote(z))))
	}
	return g
}

// sharings tells of each zone whose jobs wait, and of the last reordering.
func (s *session) sharings(zones []api.Zone) string {
	var b strings.Builder
	for _, z := range zones {
		if len(z.Shares) > 0 {
			b.WriteString("\n" + shareHead(z) + "\n")
			g := newGrid("TASK", "OPERATOR", "PRIORITY", ">WAITING", ">RUNNING", ">TOTAL", "DUE")
			for _, t := range z.Shares {
				g.add(cell(string(t.Task)), cell(t.Operator), cell(string(t.Priority)),
					strconv.Itoa(t.Waiting), strconv.Itoa(t.Running), strconv.Itoa(t.Total), moment(t.Due))
			}
			b.WriteString(g.render(s.tableWidth(), !s.headless))
		}
		b.WriteString(deferredText(z, s.tableWidth(), s.headless))
		if words := reorderedWords(z.Reordered, s.now()); words != "" {
			b.WriteString("\n" + cell(z.Zone) + ": " + words + "\n")
		}
	}
	return b.String()
}

func shareHead(z api.Zone) string {
	words := fmt.Sprintf("%s: %s open, by jobs that wait", cell(z.Zone), count(z.Tasks, "task"))
	if z.Tasks > len(z.Shares) {
		words += fmt.Sprintf(" (%d shown)", len(z.Shares))
	}
	return words
}

// reorderedWords tells of the last reordering; empty: there was none.
func reorderedWords(r jobs.Reordered, now time.Time) string {
	var list []string
	if r.Now {
		list = append(list, "being reordered now")
	}
	if !r.At.IsZero() {
		words := fmt.Sprintf("reordered %s: %s in %s by %s", ago(r.At, now), count(r.Moved, "job"),
			span(seconds(r.Seconds)), cell(r.By))
		if r.End != jobs.ReorderDone {
			words += " (" + cell(string(r.End)) + ")"
		}
		list = append(list, words)
	}
	if !r.Next.IsZero() {
		list = append(list, "not again before "+moment(r.Next))
	}
	return strings.Join(list, "; ")
}

// zoneLine is a zone in one line.
func zoneLine(z api.Zone, now time.Time) string {
	if z.Trouble != "" {
		return cell(z.Zone) + ": not known: " + cell(z.Trouble)
	}
	list := []string{fmt.Sprintf("%s: %d queued, %d again, %d due", cell(z.Zone), z.Queued, z.Again,
		z.Due)}
	if z.Overdue > 0 {
		list[0] += ", overdue " + span(seconds(z.Overdue))
	}
	if len(z.Shares) > 0 {
		var shares []string
		for _, t := range z.Shares {
			shares = append(shares, fmt.Sprintf("%s (%s) %d", cell(string(t.Task)), cell(t.Operator),
				t.Waiting))
		}
		list = append(list, "waiting: "+strings.Join(shares, ", "))
	}
	for _, words := range []string{deferredWords(z.Deferred), reorderedWords(z.Reordered, now),
		zoneNote(z)} {
		if words != "" {
			list = append(list, words)
		}
	}
	return strings.Join(list, "; ")
}

// picture draws a bar for each task, as long as what waits of it. Behind it stands
// how many run.
func (s *session) picture(z api.Zone) string {
	width := s.tableWidth()
	if width == 0 {
		width = 80
	}
	var b strings.Builder
	if len(z.Shares) > 0 {
		b.WriteString("\n" + fit(shareHead(z), width) + "\n")
	}
	most, operator := 1, 0
	for _, t := range z.Shares {
		most = max(most, t.Waiting)
		operator = min(max(operator, text.StringWidthWithoutEscSequences(cell(t.Operator))), 16)
	}
	for _, t := range z.Shares {
		who := text.Pad(fit(cell(t.Operator), operator), operator, ' ')
		head := cell(string(t.Task)) + " " + who + " "
		tail := fmt.Sprintf(" %d, %d running", t.Waiting, t.Running)
		room := max(min(width-1-text.StringWidthWithoutEscSequences(head)-len(tail), 2*barMost), barLeast)
		bar := strings.Repeat("#", max(t.Waiting*room/most, 1))
		b.WriteString(fit(head+bar+tail, width) + "\n")
	}
	for _, words := range []string{deferredWords(z.Deferred), reorderedWords(z.Reordered, s.now())} {
		if words != "" {
			b.WriteString(fit(cell(z.Zone)+": "+words, width) + "\n")
		}
	}
	return b.String()
}

func num(n int64) string { return strconv.FormatInt(n, 10) }

// zoneNote says why nothing starts in a zone, if that is so.
func zoneNote(z api.Zone) string {
	var list []string
	switch {
	case z.Owes:
		list = append(list, "frozen until history was asked")
	case !z.Frozen.IsZero():
		list = append(list, "frozen until "+moment(z.Frozen))
	}
	for _, note := range []string{z.Halted, z.Paused} {
		if note != "" {
			list = append(list, cell(note))
		}
	}
	for _, note := range []string{z.Why, z.NoNode} {
		if note != "" {
			list = append(list, cell(note))
		}
	}
	return strings.Join(list, "; ")
}
