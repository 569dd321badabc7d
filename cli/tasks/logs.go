package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/fleet/remote"
	"muster/jobs"
)

// NewLogs makes the command logs.
func NewLogs() *cobra.Command {
	var f logFlags
	c := &cobra.Command{
		Use:   "logs TASK|JOB",
		Short: "Print the output of hosts, also while their jobs run",
		Long: `logs prints the output of a job, or of all jobs of a task, each line behind the name
of its host. With -f it continues while jobs run, until they have ended.

--fold groups the hosts of a task that have equal output, the biggest group first;
--diff shows how the output of other hosts differs from that of the majority.

On a terminal logs makes characters harmless that could move the cursor, hide text or
do worse. In a pipe or a file the output of a job is what the host sent, byte for
byte; for a task --raw does that.`,
		Example: `  muster logs 0wcy7y2fb2:fw001
  muster logs 0wcy7y2fb2:fw001 > fw001.txt
  muster logs -f 0wcy7y2fb2
  muster logs --fold 0wcy7y2fb2
  muster logs --diff 0wcy7y2fb2
  muster logs --raw 0wcy7y2fb2 > all.txt`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) (
			[]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cli.NoFiles
			}
			return complete.TaskOrJobs(c, nil, typed)
		},
	}
	fl := c.Flags()
	fl.BoolVarP(&f.follow, "follow", "f", false, "continue while jobs run")
	fl.BoolVar(&f.fold, "fold", false, "group hosts that have equal output")
	fl.BoolVar(&f.diff, "diff", false, "show what differs from the majority; folds, too")
	fl.BoolVar(&f.raw, "raw", false, "byte for byte; refused on a terminal")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		return showLogs(ctx, s, f, args[0])
	})
}

// logFlags are the flags of logs.
type logFlags struct{ follow, fold, diff, raw bool }

func showLogs(ctx context.Context, s *cli.Session, f logFlags, name string) error {
	if err := checkLogs(s.Screen, f, name); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if strings.Contains(name, ":") {
		id, err := cli.JobArg(name)
		switch {
		case err != nil:
			return err
		case f.follow:
			return followJob(ctx, s, id)
		}
		return jobLog(ctx, s, id)
	}
	id, err := cli.TaskArg(name)
	switch {
	case err != nil:
		return err
	case f.fold || f.diff:
		return foldLogs(ctx, s, f, id)
	}
	return tailTask(ctx, s, f, id)
}

// checkLogs reports all mistakes in the flags of logs.
func checkLogs(s *cli.Screen, f logFlags, name string) error {
	var errs []error
	if f.raw && (s.OutTerm || s.JSON) {
		errs = append(errs, errors.New("--raw: the bytes of a host can do harm on a terminal, and "+
			"are no JSON: send them to a file or a pipe"))
	}
	if f.raw && (f.fold || f.diff) {
		errs = append(errs, errors.New("--raw and --fold: groups are for people; `muster logs --raw "+
			"JOB` has the bytes of a host"))
	}
	if (f.fold || f.diff) && strings.Contains(name, ":") {
		errs = append(errs, fmt.Errorf("--fold and --diff compare the hosts of a task: name the task, "+
			"%s", cli.Cell(string(jobs.ID(name).Task()))))
	}
	return errors.Join(errs...)
}

// jobLog prints the output of a host so far.
func jobLog(ctx context.Context, s *cli.Session, id jobs.ID) error {
	h, err := s.Output(ctx, id, 0, 0)
	if err != nil {
		return err
	}
	if !h.Ended && !s.JSON {
		s.Say("job %[1]s has not ended: `muster logs -f %[1]s` follows it", id)
	}
	return showOutput(s.Screen, id, h.Data)
}

// jobOutput is the output of a job for JSON, which can hold arbitrary bytes only as base64.
type jobOutput struct {
	Job    jobs.ID `json:"job"`
	Bytes  int     `json:"bytes"`
	Output []byte  `json:"output"`
}

func showOutput(s *cli.Screen, id jobs.ID, output []byte) error {
	switch {
	case s.JSON:
		return s.WriteJSON(jobOutput{id, len(output), output})
	case !s.OutTerm:
		return s.Write(string(output))
	}
	text := remote.Printable(output)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n" // otherwise the prompt would follow on the same line
	}
	return s.Write(text)
}

// jobPart is a part of the output of a job that is followed, a line of JSON.
type jobPart struct {
	Job    jobs.ID `json:"job"`
	Next   int64   `json:"next"` // position behind it
	Output []byte  `json:"output"`
	Ended  bool    `json:"ended"`
}

// followJob prints the output of a host until the job has ended.
func followJob(ctx context.Context, s *cli.Session, id jobs.ID) error {
	var at int64
	var clean washer
	for pace := time.Duration(0); ; pace = watch.PaceMost {
		// A server that answers at once must not be asked without a pause either.
		if !cli.Sleep(ctx, pace) {
			return ctx.Err()
		}
		h, err := cli.Again(ctx, s.Patience, func() (cli.Heard, error) {
			return s.Output(ctx, id, at, watch.WaitFor)
		}, func(err error, _ time.Duration) { s.Say("%s", cli.TroubleWords(err)) })
		if err != nil {
			return err
		}
		at = h.Next
		if err := showPart(s.Screen, jobPart{id, at, h.Data, h.Ended}, &clean); err != nil || h.Ended {
			return err
		}
	}
}

func showPart(s *cli.Screen, p jobPart, clean *washer) error {
	switch {
	case s.JSON && (len(p.Output) > 0 || p.Ended):
		line, err := cli.Encode(p, "")
		if err != nil {
			return err
		}
		return s.Write(line)
	case s.JSON:
		return nil
	case !s.OutTerm:
		return s.Write(string(p.Output))
	}
	text := clean.wash(p.Output)
	if p.Ended {
		text += clean.rest()
		if clean.open {
			text += "\n"
		}
	}
	return s.Write(text)
}

// washer makes output of a host harmless that arrives in pieces.
type washer struct {
	held []byte // the end of a piece, which may look different with the bytes that follow
	open bool   // the last line has not ended
}

func (w *washer) wash(p []byte) string {
	p = append(w.held, p...)
	n := len(p) - remote.Unfinished(p)
	w.held = append([]byte(nil), p[n:]...)
	return w.note(remote.Printable(p[:n]))
}

// rest returns what is left at the end.
func (w *washer) rest() string {
	text := remote.Printable(w.held)
	w.held = nil
	return w.note(text)
}

func (w *washer) note(text string) string {
	if text != "" {
		w.open = !strings.HasSuffix(text, "\n")
	}
	return text
}
