package orders

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/fleet"
	"muster/jobs"
)

// target is the object of a pause or a resume: one of these.
type target struct {
	task, customer, zone string
	named                bool // a task was given, even if as an empty text
	all                  bool
}

// path returns the route of a verb for the target, or an error about the target.
func (t target) path(verb string) (string, error) {
	given := 0
	for _, is := range []bool{t.named, t.customer != "", t.zone != "", t.all} {
		if is {
			given++
		}
	}
	switch {
	case given != 1 && verb == "resume":
		return "", errors.New("want one of TASK, --customer, --zone and --all (which ends a halt)")
	case given != 1:
		return "", errors.New("want one of TASK, --customer and --zone; `muster halt` stops everything")
	case t.all:
		return "/v1/lift", nil
	case t.customer != "":
		if err := fleet.CheckName(t.customer); err != nil {
			return "", fmt.Errorf("--customer: %w", err)
		}
		return "/v1/customers/" + url.PathEscape(t.customer) + "/" + verb, nil
	case t.zone != "":
		if err := fleet.CheckZone(t.zone); err != nil {
			return "", fmt.Errorf("--zone: %w", err)
		}
		return "/v1/zones/" + url.PathEscape(t.zone) + "/" + verb, nil
	}
	id, err := cli.TaskArg(t.task)
	return "/v1/tasks/" + url.PathEscape(string(id)) + "/" + verb, err
}

func (t *target) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&t.customer, "customer", "", "all hosts of this `customer`")
	c.Flags().StringVar(&t.zone, "zone", "", "everything in this `zone`")
	cli.CompleteFlagWith(c, "customer", complete.Customers)
	cli.CompleteFlagWith(c, "zone", complete.Zones)
}

// NewPause makes the command pause.
func NewPause() *cobra.Command {
	t, reason := target{}, ""
	c := &cobra.Command{
		Use:   "pause TASK | --customer NAME | --zone NAME",
		Short: "Start no more jobs of a task, a customer or a zone",
		Long: `pause lets no more jobs start. Running jobs continue to their end. Nothing is lost:
muster resume brings the jobs back, and they expire later by the length of the pause.`,
		Example: `  muster pause 0wcy7y2fb2
  muster pause --customer acme --reason 'their change freeze'
  muster pause --zone zrh`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	t.addFlags(c)
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		t.task, t.named = strings.Join(args, ""), len(args) > 0
		path, err := t.path("pause")
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return turn(ctx, s, path, reason)
	})
}

// NewResume makes the command resume.
func NewResume() *cobra.Command {
	t, reason := target{}, ""
	c := &cobra.Command{
		Use:   "resume TASK | --customer NAME | --zone NAME | --all",
		Short: "End a pause, or with --all the halt",
		Long: `resume brings back the jobs that a pause laid aside. With --all it ends a halt and
nothing else: tasks, customers and zones with a pause of their own stay paused, and
resume lists them.`,
		Example: `  muster resume 0wcy7y2fb2
  muster resume --customer acme
  muster resume --all --reason 'the fire is out'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	t.addFlags(c)
	c.Flags().BoolVar(&t.all, "all", false, "end the halt; needs --reason")
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		t.task, t.named = strings.Join(args, ""), len(args) > 0
		path, err := t.path("resume")
		if t.all && err == nil {
			err = cli.NeedReason(reason, "the halt is over")
		}
		switch {
		case err != nil:
			return cli.Exit(cli.ExitUsage, err)
		case t.all:
			return lift(ctx, s, path, reason)
		}
		return turn(ctx, s, path, reason)
	})
}

// NewHalt makes the command halt.
func NewHalt() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "halt",
		Short: "The big red button: nothing starts any more, anywhere",
		Long: `halt stops everything: no job starts, and no running job begins a further step.
Commands that run on hosts continue to their end. Only
muster resume --all --reason '…' ends it.`,
		Example: `  muster halt
  muster halt --reason 'the new firmware bricks x200'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		return turn(ctx, s, "/v1/halt", reason)
	})
}

// turn gives an order that turns a switch, and prints the result.
func turn(ctx context.Context, s *cli.Session, path, reason string) error {
	var did jobs.Switched
	if err := s.Order(ctx, path, reason, &did); err != nil {
		return err
	}
	if s.JSON {
		return told(s.WriteJSON(did), did)
	}
	return told(s.Write(switchedText(did)), did)
}

// told ends an order whose result was printed, or could not be. If a later order has overtaken it,
// the exit code must stop a script that relies on this one.
func told(err error, d jobs.Switched) error {
	if err == nil && d.Overtaken {
		return cli.ExitWith(cli.ExitNotAll)
	}
	return err
}

func lift(ctx context.Context, s *cli.Session, path, reason string) error {
	var did api.Lifted
	if err := s.Order(ctx, path, reason, &did); err != nil {
		return err
	}
	if s.JSON {
		return told(s.WriteJSON(did), did.Switched)
	}
	text := switchedText(did.Switched)
	for _, line := range watch.StandingLines(did.Stay) {
		text += "still: " + line + "\n"
	}
	return told(s.Write(text), did.Switched)
}

// switchedText describes the result of a pause, a halt or a resume.
func switchedText(d jobs.Switched) string {
	what, off, on := cli.Cell(string(d.What))+" "+cli.Cell(d.Name), "paused", "resumed"
	if d.What == jobs.SwitchAll {
		what, off, on = "everything", "halted", "no longer halted"
	}
	text := ""
	switch {
	case d.Ended:
		text = what + " has ended: nothing to do"
	case d.Overtaken && d.Paused:
		text = fmt.Sprintf("%s is %s by an order that was given after this one, and stays so: %s",
			what, off, cli.Cell(d.Note))
	case d.Overtaken:
		text = fmt.Sprintf("%s is not %s: an order that was given after this one ended that", what, off)
	case d.Paused && d.Already:
		text = what + unchanged(d.Note)
	case d.Already:
		text = fmt.Sprintf("%s was not %s: nothing to do", what, off)
	case d.Paused:
		text = fmt.Sprintf("%s is %s", what, off) + movedText(d, "laid aside")
	default:
		text = fmt.Sprintf("%s is %s", what, on) + movedText(d, "brought back")
	}
	if len(d.Missing) > 0 {
		text += fmt.Sprintf("\nnot confirmed by zone %s: a server repeats it until it is",
			cli.Cell(strings.Join(d.Missing, ", ")))
	}
	return text + "\n"
}

// unchanged names the order that stands already, and says that the reason of the second one is not
// kept.
func unchanged(note string) string {
	return " stays as it was, " + cli.Cell(note) + cli.ChangesNothing
}

// movedText counts the jobs of a task that were moved, and those in hand. Jobs of customers and
// zones are moved later, when a take meets them.
func movedText(d jobs.Switched, how string) string {
	text := ""
	if d.What == jobs.SwitchTask || d.Moved > 0 {
		text = fmt.Sprintf(": %s %s", cli.Count(d.Moved, "job"), how)
	}
	if d.Paused && d.Running > 0 {
		then := "they continue"
		if d.What == jobs.SwitchAll {
			then = "none begins a further step"
		}
		text += fmt.Sprintf(", %d running: %s", d.Running, then)
	}
	return text
}
