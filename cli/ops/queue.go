package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/watch"
	"muster/jobs"
	"muster/jobs/front"
)

// NewQueue makes the command queue.
func NewQueue() *cobra.Command {
	live := false
	c := &cobra.Command{
		Use:   "queue",
		Short: "Show how many jobs wait in each zone, and of which tasks",
		Long: `queue shows how many jobs wait in each zone, how late the first of them is, which
tasks they belong to, and when an overloaded queue was last put into a fair order.
QUEUED counts jobs that have never begun. AGAIN counts jobs that run, or wait for
another try or for a group, a limit or a host that other jobs have. DUE counts the jobs
of both that could begin now. OLDEST looks at QUEUED only. Paused jobs are in none of
these; the list below counts them as WAITING. Jobs that wait for a window, the end of a
freeze or their place in a jitter are deferred: the list below shows how many, of which
task, for which window, and when they are due.

With --watch queue looks again each second. It draws a picture on a terminal, with the
front of the queue: whose jobs have the next places. Elsewhere it writes a line for each
zone that has changed, and with -o json a line of JSON with all zones when one has.`,
		Example: `  muster queue
  muster queue --watch
  muster queue --watch -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&live, "watch", false, "look again each second")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		if live {
			return watchQueue(ctx, s)
		}
		zones, err := s.Zones(ctx)
		if err != nil {
			return err
		}
		none := whenNone(watch.Banner(ctx, s), nothingWaits)
		if err := s.List(zones, queueGrid(zones, s.Colours), none); err != nil || s.JSON {
			return err
		}
		return s.Write(sharings(s.Screen, zones))
	})
}

const nothingWaits = "there are no zones: Redis knows of no task; `muster nodes` lists the " +
	"nodes, `muster master` starts one"

// whenNone returns the words for an empty list: those of a new house, or, if Redis has lost what
// was agreed, words that claim nothing about the time before.
func whenNone(lost bool, words string) string {
	if lost {
		return "none is known at present: Redis was emptied, and nodes report again within ten seconds"
	}
	return words
}

// watchQueue shows the queue each second until ctx is done.
func watchQueue(ctx context.Context, s *cli.Session) error {
	said := map[string]string{}
	for {
		zones, err := cli.Again(ctx, s.Patience, func() ([]api.Zone, error) { return s.Zones(ctx) },
			func(err error, _ time.Duration) { s.Say("%s", cli.TroubleWords(err)) })
		if err != nil {
			return err
		}
		shown, err := glance(ctx, s, zones, said)
		if err != nil {
			return err
		}
		if err := s.Write(shown); err != nil {
			return err
		}
		if !cli.Sleep(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// glance returns the queue in the form of the output. On a terminal that is the whole picture,
// elsewhere what has changed since it was said.
func glance(ctx context.Context, s *cli.Session, zones []api.Zone, said map[string]string) (string,
	error) {
	var b strings.Builder
	stands := watch.Standing(ctx, s.Client, "")
	if !s.OutTerm || s.JSON {
		return changes(s, zones, stands, said)
	}
	b.WriteString(cli.EraseScreen)
	if len(zones) > 0 {
		b.WriteString(queueGrid(zones, s.Colours).Render(s.TableWidth(), !s.Headless))
	} else {
		b.WriteString(nothingWaits + "\n")
	}
	for _, line := range stands {
		b.WriteString(s.Colours.Paint(cli.Yellow, line) + "\n")
	}
	for _, z := range zones {
		b.WriteString(picture(s.Screen, z))
	}
	return b.String(), nil
}

// zoneKey begins the names of zones among what was said; no line about an order begins so.
const zoneKey = "\x00"

// changes returns a line for each zone and each order that has changed, or, as JSON, one with all
// zones if one of them has. That time has passed is no change.
func changes(s *cli.Session, zones []api.Zone, stands []string, said map[string]string) (string,
	error) {
	now, changed := map[string]string{"": "looked"}, []string{}
	for _, z := range zones {
		still := z
		still.Overdue = 0
		text, err := cli.Encode(still, "")
		if err != nil {
			return "", err
		}
		now[zoneKey+z.Zone] = text
		if said[zoneKey+z.Zone] != text {
			changed = append(changed, zoneLine(z, s.Now()))
		}
	}
	for _, line := range stands {
		if now[line] = line; said[line] == "" && !s.JSON {
			changed = append([]string{s.Colours.Paint(cli.Yellow, line)}, changed...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		// Whether an order is over is not known: a question about orders may have failed.
		if zone, isZone := strings.CutPrefix(name, zoneKey); isZone && now[name] == "" {
			changed = append(changed, cli.Cell(zone)+": it is gone")
		}
	}
	first := said[""] == ""
	clear(said)
	maps.Copy(said, now)
	switch {
	case s.JSON && (first || len(changed) > 0):
		return cli.Encode(zones, "")
	case s.JSON:
		return "", nil
	}
	var b strings.Builder
	for _, line := range changed {
		b.WriteString(cli.Moment(jobs.Time{Time: s.Now()}) + "  " + line + "\n")
	}
	return b.String(), nil
}

func queueGrid(zones []api.Zone, colours cli.Palette) cli.Grid {
	g := cli.NewGrid("ZONE", ">QUEUED", ">AGAIN", ">DUE", "OLDEST", ">OVERDUE", "NOTE")
	for _, z := range zones {
		if z.Trouble != "" {
			g.Add(cli.Cell(z.Zone), "?", "?", "?", "?", "?", colours.Paint(cli.Yellow, cli.Cell(z.Trouble)))
			continue
		}
		overdue := "-"
		if z.Overdue > 0 {
			overdue = cli.Span(cli.Seconds(z.Overdue))
		}
		g.Add(cli.Cell(z.Zone), num(z.Queued), num(z.Again), num(z.Due), cli.Moment(z.Oldest), overdue,
			cli.OrDash(colours.Paint(cli.Yellow, zoneNote(z))))
	}
	return g
}

// sharings shows for each zone the tasks whose jobs wait, and the last reordering.
func sharings(s *cli.Screen, zones []api.Zone) string {
	var b strings.Builder
	for _, z := range zones {
		if len(z.Shares) > 0 {
			b.WriteString("\n" + shareHead(z) + "\n")
			g := cli.NewGrid("TASK", "OPERATOR", "PRIORITY", ">WAITING", ">RUNNING", ">TOTAL", "DUE")
			for _, t := range z.Shares {
				g.Add(cli.Cell(string(t.Task)), cli.Cell(t.Operator), cli.Cell(string(t.Priority)),
					strconv.Itoa(t.Waiting), strconv.Itoa(t.Running), strconv.Itoa(t.Total), cli.Moment(t.Due))
			}
			b.WriteString(g.Render(s.TableWidth(), !s.Headless))
		}
		b.WriteString(watch.DeferredText(z, s.TableWidth(), s.Headless))
		if words := reorderedWords(z.Reordered, s.Now()); words != "" {
			b.WriteString("\n" + cli.Cell(z.Zone) + ": " + words + "\n")
		}
	}
	return b.String()
}

func shareHead(z api.Zone) string {
	words := fmt.Sprintf("%s: %s open, by jobs that wait", cli.Cell(z.Zone), cli.Count(z.Tasks,
		"task"))
	if z.Tasks > len(z.Shares) {
		words += fmt.Sprintf(" (%d shown)", len(z.Shares))
	}
	return words
}

// reorderedWords describes the last reordering; empty: there was none.
func reorderedWords(r jobs.Reordered, now time.Time) string {
	var list []string
	if r.Now {
		list = append(list, "being reordered now")
	}
	if !r.At.IsZero() {
		words := fmt.Sprintf("reordered %s: %s in %s by %s", cli.Ago(r.At, now), cli.Count(r.Moved,
			"job"),
			cli.Span(cli.Seconds(r.Seconds)), cli.Cell(r.By))
		if r.End != jobs.ReorderDone {
			words += " (" + cli.Cell(string(r.End)) + ")"
		}
		list = append(list, words)
	}
	if !r.Next.IsZero() {
		list = append(list, "not again before "+cli.Moment(r.Next))
	}
	return strings.Join(list, "; ")
}

// zoneLine describes a zone in one line.
func zoneLine(z api.Zone, now time.Time) string {
	if z.Trouble != "" {
		return cli.Cell(z.Zone) + ": not known: " + cli.Cell(z.Trouble)
	}
	list := []string{fmt.Sprintf("%s: %d queued, %d again, %d due", cli.Cell(z.Zone), z.Queued,
		z.Again,
		z.Due)}
	if z.Overdue > 0 {
		list[0] += ", overdue " + cli.Span(cli.Seconds(z.Overdue))
	}
	if len(z.Shares) > 0 {
		var shares []string
		for _, t := range z.Shares {
			shares = append(shares, fmt.Sprintf("%s (%s) %d", cli.Cell(string(t.Task)), cli.Cell(t.Operator),
				t.Waiting))
		}
		list = append(list, "waiting: "+strings.Join(shares, ", "))
	}
	for _, words := range []string{watch.DeferredWords(z.Deferred), reorderedWords(z.Reordered, now),
		zoneNote(z), cli.Cell(front.Words(z.Shares, front.Of(z.Shares, frontPlaces)))} {
		if words != "" {
			list = append(list, words)
		}
	}
	return strings.Join(list, "; ")
}

// frontPlaces is the number of places at the front of a queue that a line counts.
const frontPlaces = 100

// signs stand for the tasks in the picture of the front of a queue.
const signs = "abcdefghijklmnopqrstuvwxyz"

// signOf returns the sign of the task with an index; those behind the letters share one.
func signOf(i int) string {
	if i < len(signs) {
		return signs[i : i+1]
	}
	return "+"
}

// frontLine draws the front of a queue: the sign of a task for each place. It is empty if no job
// waits.
func frontLine(z api.Zone, width int) string {
	const head = "next: "
	at := front.Of(z.Shares, max(1, min(frontPlaces, width-1-len(head))))
	if len(at) == 0 {
		return ""
	}
	of := map[jobs.TaskID]string{}
	for i, t := range z.Shares {
		of[t.Task] = signOf(i)
	}
	line := head
	for _, id := range at {
		line += of[id]
	}
	return cli.Fit(line, width) + "\n"
}

// picture draws a bar for each task, as long as the number of its waiting jobs. The number of
// running jobs follows, and below the bars stands the front of the queue.
func picture(s *cli.Screen, z api.Zone) string {
	width := s.TableWidth()
	if width == 0 {
		width = 80
	}
	var b strings.Builder
	if len(z.Shares) > 0 {
		b.WriteString("\n" + cli.Fit(shareHead(z), width) + "\n")
	}
	most, operator := 1, 0
	for _, t := range z.Shares {
		most = max(most, t.Waiting)
		operator = min(max(operator, text.StringWidthWithoutEscSequences(cli.Cell(t.Operator))), 16)
	}
	for i, t := range z.Shares {
		who := text.Pad(cli.Fit(cli.Cell(t.Operator), operator), operator, ' ')
		head := signOf(i) + " " + cli.Cell(string(t.Task)) + " " + who + " "
		tail := fmt.Sprintf(" %d, %d running", t.Waiting, t.Running)
		room := max(min(width-1-text.StringWidthWithoutEscSequences(head)-len(tail), 2*watch.BarMost),
			watch.BarLeast)
		bar := strings.Repeat("#", max(t.Waiting*room/most, 1))
		b.WriteString(cli.Fit(head+bar+tail, width) + "\n")
	}
	b.WriteString(frontLine(z, width))
	for _, words := range []string{watch.DeferredWords(z.Deferred), reorderedWords(z.Reordered,
		s.Now())} {
		if words != "" {
			b.WriteString(cli.Fit(cli.Cell(z.Zone)+": "+words, width) + "\n")
		}
	}
	return b.String()
}

func num(n int64) string { return strconv.FormatInt(n, 10) }

// zoneNote explains why nothing starts in a zone; empty: it is open.
func zoneNote(z api.Zone) string {
	var list []string
	switch {
	case z.Owes:
		list = append(list, "frozen until history was asked")
	case !z.Frozen.IsZero():
		list = append(list, "frozen until "+cli.Moment(z.Frozen))
	}
	for _, note := range []string{z.Halted, z.Paused} {
		if note != "" {
			list = append(list, cli.Cell(note))
		}
	}
	for _, note := range []string{z.Why, z.NoNode} {
		if note != "" {
			list = append(list, cli.Cell(note))
		}
	}
	return strings.Join(list, "; ")
}
