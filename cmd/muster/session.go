package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"muster/fleet"
	"muster/jobs"
)

// clientCommands are the commands of operators. They talk to a server, and to
// nothing else.
func clientCommands() []*cobra.Command {
	work := []*cobra.Command{newRun(), newExec(), newPlan(), newWait(), newRetry(), newCancel(),
		newPause(), newResume(), newHalt(), newRollout(), newGate(), newSchedules(), newSSH()}
	look := []*cobra.Command{newTasks(), newTask(), newJobs(), newJob(), newLogs(), newEvents(),
		newHosts(), newNodes(), newQueue(), newGroup(), newLimits(), newWindows(), newRestore(),
		newRunbooks(), newBlob(), newFacts(), newHistory(), newReport(), newToken(), newACL(),
		newSecrets(), newHealth(), newFsck()}
	for _, c := range work {
		c.GroupID = "work"
	}
	for _, c := range look {
		c.GroupID = "look"
	}
	return append(work, look...)
}

// session is one run of a command: its server and its screen.
type session struct {
	*client
	*screen
}

// clientFlags are the flags of every command that talks to a server.
type clientFlags struct {
	server, as, output string
	headless           bool
}

const (
	outputTable = "table"
	outputJSON  = "json"
)

// clientCommand completes a command that talks to a server. What do returns
// becomes the exit code; Ctrl-C ends its context.
func clientCommand(c *cobra.Command,
	do func(ctx context.Context, s *session, args []string) error) *cobra.Command {
	var f clientFlags
	c.Flags().StringVar(&f.server, "server", os.Getenv("MUSTER_URL"),
		"`URL` of the server (MUSTER_URL; default: its unix socket on this machine)")
	c.Flags().StringVar(&f.as, "as", os.Getenv("MUSTER_AS"),
		"`name` of the operator in muster demo; elsewhere a token or the kernel says it (MUSTER_AS)")
	c.Flags().StringVarP(&f.output, "output", "o", outputTable, "table or json")
	c.Flags().BoolVar(&f.headless, "no-headers", false, "tables without headings")
	completeFlag(c, "output", outputTable, outputJSON)
	c.RunE = func(c *cobra.Command, args []string) error {
		s, err := f.open(c)
		if err != nil {
			return exit(exitUsage, err)
		}
		defer s.close()
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // the second Ctrl-C ends the program whatever it does
		if args, err = s.takeLast(ctx, c, args); err != nil {
			return ending(ctx, err)
		}
		return ending(ctx, do(ctx, s, args))
	}
	return c
}

// open reports everything that is wrong with the flags.
func (f clientFlags) open(c *cobra.Command) (*session, error) {
	var errs []error
	if f.output != outputTable && f.output != outputJSON {
		errs = append(errs, fmt.Errorf("--output %q: want table or json", f.output))
	}
	if f.as != "" {
		if err := fleet.CheckName(f.as); err != nil {
			errs = append(errs, fmt.Errorf("--as: %w", err))
		}
	}
	cl, err := newClient(f.server, os.Getenv("MUSTER_TOKEN"))
	if err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	cl.as = f.as
	s := &session{cl, newScreen(c)}
	s.json, s.headless = f.output == outputJSON, f.headless
	return s, nil
}

// ending gives the end of a command its exit code.
func ending(ctx context.Context, err error) error {
	var coded *exitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.As(err, &coded) && coded.code == exitUsage:
		return exit(exitInterrupted, nil) // what could not be read, for it was not waited for
	case errors.As(err, &coded):
		return err
	case ctx.Err() != nil:
		return exit(exitInterrupted, nil)
	}
	return exit(codeOf(err), err)
}

// taskArg reads the id of a task from the command line.
func taskArg(text string) (jobs.TaskID, error) {
	id, err := jobs.ParseTaskID(text)
	if err != nil {
		if _, job := jobs.ParseID(text); job == nil {
			err = fmt.Errorf("%q is a job: its task is %s", text, jobs.ID(text).Task())
		}
		return "", exit(exitUsage, fmt.Errorf("%w; `muster tasks` lists the tasks", err))
	}
	return id, nil
}

// jobArg reads the id of a job from the command line.
func jobArg(text string) (jobs.ID, error) {
	id, err := jobs.ParseID(text)
	if err != nil {
		return "", exit(exitUsage, fmt.Errorf("%w; `muster jobs TASK` lists the jobs", err))
	}
	return id, nil
}
