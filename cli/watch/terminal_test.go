package watch

import (
	"io"
	"os"
	"testing"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

func TestScreenKnowsItsWidth(t *testing.T) {
	t.Setenv("TERM", "xterm")
	tty, stop := apitest.OpenTerminal(t, 37)
	defer stop()
	c := &cobra.Command{}
	c.SetOut(tty)
	c.SetErr(io.Discard)
	s := cli.NewScreen(c)
	if !s.OutTerm || s.ErrTerm || s.TableWidth() != 37 {
		t.Errorf("terminal out %v, err %v, %d columns, want true, false and 37", s.OutTerm, s.ErrTerm, s.TableWidth())
	}
	if newDisplay(s) == nil || s.Colours.Outcome(jobs.Failed, "x") == "x" && os.Getenv("NO_COLOR") == "" {
		t.Error("a terminal without colours")
	}
}
