package times

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/windows"
)

// exportFor is the span of an exported calendar, unless flags set it.
const exportFor = 90 * 24 * time.Hour

func newWindowsExport() *cobra.Command {
	var window, from, until string
	c := &cobra.Command{
		Use:   "export HOST | --window NAME",
		Short: "Write the times in which a host or a window is open as an iCalendar file",
		Long: `export writes an iCalendar file with an event for each occurrence, in UTC, for people who
want to see it in their calendar. Occurrences that nobody has approved yet are TENTATIVE.
The file shows what is agreed now, and does not follow later changes.`,
		Example: `  muster windows export fw001 > fw001.ics
  muster windows export --window acme-sunday --until 2028-01-01 > acme.ics`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.HostName,
	}
	c.Flags().StringVar(&window, "window", "", "`name` of a window, instead of a host")
	c.Flags().StringVar(&from, "from", "", "`time` of the first (default now)")
	c.Flags().StringVar(&until, "until", "", "`time` before which they begin (default 90 days later)")
	cli.CompleteFlagWith(c, "window", completeWindows)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		path := "/v1/windows/" + url.PathEscape(window) + "/next"
		switch {
		case (window == "") == (len(args) == 0):
			return cli.Exit(cli.ExitUsage, errors.New("want one of HOST and --window"))
		case window == "":
			path = "/v1/hosts/" + url.PathEscape(args[0]) + "/next"
		}
		begin, end, err := exportSpan(from, until, s.Now())
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		q := url.Values{"count": {strconv.Itoa(occurrencesMost)},
			"from": {begin.UTC().Format(time.RFC3339)}}
		var l api.OccurrenceList
		if err := s.Get(ctx, path, q, &l); err != nil {
			return err
		}
		var list []windows.Approved
		shown := []api.Occurrence{}
		for _, o := range l.Occurrences {
			if !o.Start.Before(end) {
				break
			}
			shown = append(shown, o)
			list = append(list, windows.Approved{OK: o.Approved, Occurrence: windows.Occurrence{
				Window: o.Window, Start: o.Start.Time, End: o.End.Time}})
		}
		if len(list) == occurrencesMost {
			s.Say("these are the first %d: for later ones say --from %s", occurrencesMost,
				list[len(list)-1].End.UTC().Format(time.RFC3339))
		}
		if s.JSON {
			return s.WriteJSON(shown)
		}
		return s.Write(string(windows.WriteICal(list, s.Now())))
	})
}

// exportSpan returns the begin and the end of an exported calendar.
func exportSpan(from, until string, now time.Time) (begin, end time.Time, err error) {
	begin = now
	if from != "" {
		if begin, err = cli.When(from); err != nil {
			return begin, end, fmt.Errorf("--from: %w", err)
		}
	}
	end = begin.Add(exportFor)
	if until != "" {
		if end, err = cli.When(until); err != nil {
			return begin, end, fmt.Errorf("--until: %w", err)
		}
	}
	if !end.After(begin) {
		return begin, end, fmt.Errorf("--until %s is not after --from %s", end.Format(time.RFC3339),
			begin.Format(time.RFC3339))
	}
	return begin, end, nil
}
