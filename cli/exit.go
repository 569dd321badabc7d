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

// ExitError ends the program with a code. Without err it prints nothing more.
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

// Execute runs the command that the arguments name. It returns the exit code, and the error to
// print.
func Execute(ctx context.Context, root *cobra.Command) (int, error) {
	cmd, err := root.ExecuteContextC(ctx)
	var e *ExitError
	switch {
	case err == nil:
		return ExitOK, nil
	case errors.As(err, &e):
		return e.Code, e.Err
	}
	// An error of cobra itself means wrong use.
	return ExitUsage, fmt.Errorf("%w\nsee %s --help", plainError(err), cmd.CommandPath())
}

// Complain prints an error for people, one line each. Any error may contain text of a host or a
// server, so this one place makes all of them harmless.
func Complain(w io.Writer, err error) {
	for line := range strings.Lines(remote.Harmless(err.Error())) {
		fmt.Fprintln(w, "muster: "+strings.TrimRight(line, "\n"))
	}
}

// ExitWith ends a command that has printed everything already.
func ExitWith(code int) error {
	if code == ExitOK {
		return nil
	}
	return Exit(code, nil)
}
