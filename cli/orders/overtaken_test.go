package orders

import (
	"errors"
	"testing"

	"muster/cli"
	"muster/jobs"
)

func TestWhatOvertookAnOrderIsSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		did  jobs.Switched
		want string
	}{
		{jobs.Switched{What: jobs.SwitchAll, Paused: true, Overtaken: true, Note: "halted by bob: fire"},
			"everything is halted by an order that was given after this one, and stays so: halted by bob: fire\n"},
		{jobs.Switched{What: jobs.SwitchCustomer, Name: "acme", Paused: true, Overtaken: true, Note: "bob"},
			"customer acme is paused by an order that was given after this one, and stays so: bob\n"},
		{jobs.Switched{What: jobs.SwitchAll, Overtaken: true},
			"everything is not halted: an order that was given after this one ended that\n"},
		{jobs.Switched{What: jobs.SwitchAll, Already: true}, "everything was not halted: nothing to do\n"},
	} {
		if got := switchedText(c.did); got != c.want {
			t.Errorf("%+v is told as %q, want %q", c.did, got, c.want)
		}
		var e *cli.ExitError
		if err := told(nil, c.did); c.did.Overtaken != (errors.As(err, &e) && e.Code == cli.ExitNotAll && e.Err == nil) {
			t.Errorf("%+v ends with %v", c.did, err)
		}
	}
}
