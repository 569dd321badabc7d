package submit

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/approvals"
	"muster/jobs"
)

// heldFlags say whether a task waits for signatures of people.
type heldFlags struct {
	hold, sign bool
	glass      string // why one person runs it alone; empty: that is not so
}

func (f *heldFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.hold, "hold", false,
		"let the task wait until people have signed it (muster approvals)")
	c.Flags().BoolVar(&f.sign, "sign", false,
		"sign the task with your own key of SSH, for nodes that want the word of a person")
	c.Flags().StringVar(&f.glass, "break-glass", "",
		"sign and run alone what more people must sign, for a `reason`; others review it")
	c.MarkFlagsMutuallyExclusive("hold", "sign", "dry-run", "break-glass")
	c.MarkFlagsMutuallyExclusive("hold", "wait")
}

// any reports whether the task is put on hold.
func (f heldFlags) any() bool { return f.hold || f.signs() }

// signs reports whether the operator signs the task at once.
func (f heldFlags) signs() bool { return f.sign || f.glass != "" }

// query returns the query of the submit.
func (f heldFlags) query() url.Values {
	q := url.Values{"hold": {"true"}}
	if f.glass != "" {
		q.Set("break_glass", f.glass)
	}
	return q
}

// asked is a submit with its answer.
type asked struct {
	request api.Submit
	task    api.Submitted
}

// wait signs a held task if its operator asked for that, and says what is still to be done. It
// reports whether the task runs.
func (f heldFlags) wait(ctx context.Context, s *cli.Session, k approvals.Signer, a asked) (
	runs bool, err error) {
	id := a.task.Task
	if a.task.State != jobs.TaskSubmitting { // a repeated submit, and people have signed meanwhile
		return true, nil
	}
	missing := -1
	if f.signs() {
		did, err := k.SignOwn(ctx, s, a.request, id)
		if err != nil {
			return false, fmt.Errorf("%w\ntask %s waits: sign it with `muster approvals approve %s`, or "+
				"withdraw it with `muster approvals refuse %s`", err, id, id, id)
		}
		if did.Committed {
			return true, nil
		}
		missing = did.Missing
	}
	d, err := approvals.Of(ctx, s.Client, id)
	if err != nil {
		return false, err
	}
	if s.JSON {
		return false, s.WriteJSON(d.HeldTask)
	}
	s.Say("%s", Accepted(a.task))
	SayPlan(s.Screen, a.task)
	if missing < 0 {
		s.Say("it waits for signatures until %s; its order is %s", cli.Moment(d.Until),
			cli.Cell(d.Hash))
	}
	approvals.Advise(s.Screen, id)
	return false, s.Write(cli.Cell(string(id)) + "\n")
}
