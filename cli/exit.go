package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"muster/fleet/remote"
)

// Exit codes. They are part of the interface.
const (
	ExitOK          = 0
	ExitNotAll      = 1 // some job did not succeed
	ExitUsage       = 2 // wrong use, wrong configuration
	ExitUnreachable = 3 // the server does not answer
	ExitStopped     = 4 // cancelled, or stopped by a rule
	ExitInterrupted = 130
)

// ExitError ends the program with a code. Without err nothing more is said.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Exit wraps an error with the code that the program ends with.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Execute runs the command that the arguments name. It returns the exit code, and what is
// still to be said.
func Execute(ctx context.Context, root *cobra.Command) (int, error) {
	cmd, err := root.ExecuteContextC(ctx)
	var e *ExitError
	switch {
	case err == nil:
		return ExitOK, nil
	case errors.As(err, &e):
		return e.Code, e.Err
	}
	// What cobra itself finds wrong is wrong use.
	return ExitUsage, fmt.Errorf("%w\nsee %s --help", plainError(err), cmd.CommandPath())
}

// Complain writes an error for people, a line each. What a host or a server has said may
// stand in any error, so this is the one place where all of them are made harmless.
func Complain(w io.Writer, err error) {
	for line := range strings.Lines(remote.Harmless(err.Error())) {
		fmt.Fprintln(w, "muster: "+strings.TrimRight(line, "\n"))
	}
}

// ExitWith is the end of a command that said everything already.
func ExitWith(code int) error {
	if code == ExitOK {
		return nil
	}
	return Exit(code, nil)
}
