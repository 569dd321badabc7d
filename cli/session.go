package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"muster/fleet"
	"muster/internal/certs"
	"muster/internal/logins"
	"muster/jobs"
)

// Offline marks commands that call no server.
const Offline = "offline"

// Session is one run of a command: its server and its screen.
type Session struct {
	*Client
	*Screen
}

// Flags are the flags of every command that talks to a server.
type Flags struct {
	server, as, output string
	headless           bool
}

// The formats of --output.
const (
	OutputTable = "table"
	OutputJSON  = "json"
)

// Command completes a command that talks to a server. The result of do becomes the exit code;
// Ctrl-C ends its context.
func Command(c *cobra.Command,
	do func(ctx context.Context, s *Session, args []string) error) *cobra.Command {
	var f Flags
	c.Flags().StringVar(&f.server, "server", os.Getenv("MUSTER_URL"),
		"`URL` of the server (MUSTER_URL; default: its unix socket on this machine)")
	c.Flags().StringVar(&f.as, "as", os.Getenv("MUSTER_AS"),
		"`name` of the operator in muster demo; elsewhere a token or the kernel says it (MUSTER_AS)")
	c.Flags().StringVarP(&f.output, "output", "o", OutputTable, "table or json")
	c.Flags().BoolVar(&f.headless, "no-headers", false, "tables without headings")
	CompleteFlag(c, "output", OutputTable, OutputJSON)
	c.RunE = func(c *cobra.Command, args []string) error {
		s, err := f.open(c)
		if err != nil {
			return Exit(ExitUsage, err)
		}
		defer s.Close()
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program in any case
		if args, err = s.takeLast(ctx, c, args); err != nil {
			return ending(ctx, err)
		}
		return ending(ctx, do(ctx, s, args))
	}
	return c
}

// open reports all mistakes in the flags.
func (f Flags) open(c *cobra.Command) (*Session, error) {
	var errs []error
	if f.output != OutputTable && f.output != OutputJSON {
		errs = append(errs, fmt.Errorf("--output %q: want table or json", f.output))
	}
	if f.as != "" {
		if err := fleet.CheckName(f.as); err != nil {
			errs = append(errs, fmt.Errorf("--as: %w", err))
		}
	}
	token, wrong := logins.Token(os.Getenv("MUSTER_TOKEN"), f.server)
	cl, err := NewClient(f.server, token)
	if err == nil {
		err = cl.UseCertificates(certs.Client{Cert: os.Getenv("MUSTER_CLIENT_CERT"),
			Key: os.Getenv("MUSTER_CLIENT_KEY"), CA: os.Getenv("MUSTER_CA")})
	}
	if err = errors.Join(append(errs, wrong, err)...); err != nil {
		return nil, err
	}
	cl.As = f.as
	s := &Session{cl, NewScreen(c)}
	s.JSON, s.Headless = f.output == OutputJSON, f.headless
	return s, nil
}

// ending adds the exit code to the error of a command.
func ending(ctx context.Context, err error) error {
	var coded *ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.As(err, &coded) && coded.Code == ExitUsage:
		return Exit(ExitInterrupted, nil) // the command was interrupted while it read
	case errors.As(err, &coded):
		return err
	case ctx.Err() != nil:
		return Exit(ExitInterrupted, nil)
	}
	return Exit(CodeOf(err), err)
}

// TaskArg reads the id of a task from the command line.
func TaskArg(text string) (jobs.TaskID, error) {
	id, err := jobs.ParseTaskID(text)
	if err != nil {
		if _, job := jobs.ParseID(text); job == nil {
			err = fmt.Errorf("%q is a job: its task is %s", text, jobs.ID(text).Task())
		}
		return "", Exit(ExitUsage, fmt.Errorf("%w; `muster tasks` lists the tasks", err))
	}
	return id, nil
}

// JobArg reads the id of a job from the command line.
func JobArg(text string) (jobs.ID, error) {
	id, err := jobs.ParseID(text)
	if err != nil {
		return "", Exit(ExitUsage, fmt.Errorf("%w; `muster jobs TASK` lists the jobs", err))
	}
	return id, nil
}
