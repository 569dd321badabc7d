package schedules

import (
	"errors"

	"muster/internal/secretref"
	"muster/internal/wording"
	"muster/scripts"
	"muster/server/web"
	"muster/windows"
)

// openly refuses a schedule with secrets: Redis keeps the arguments of a schedule unsealed.
// References to secrets are no secrets.
func openly(c *scripts.Catalog, e windows.Entry) []error {
	var names, wrong []string
	if r, err := c.Lookup(e.Runbook); err == nil {
		names = r.SecretArguments()
	}
	if _, said := e.Args[scripts.BecomePassword]; said {
		names = append(names, scripts.BecomePassword)
	}
	var errs []error
	for _, name := range names {
		switch err := secretref.Check(e.Args[name]); {
		case errors.Is(err, secretref.ErrNone):
			wrong = append(wrong, name)
		case err != nil:
			errs = append(errs, web.Mistake("body.files", "schedule %s: argument %s: %v", e.Name, name, err))
		}
	}
	if len(wrong) > 0 {
		errs = append(errs, web.Mistake("body.files", "schedule %s: the runbook %s has secret arguments "+
			"(%s), and what a schedule asks with is kept in the open: give references that the nodes "+
			"resolve (ref:…), have the step read it from a file of the host, or run it with muster run",
			e.Name, e.Runbook, wording.Join(wrong, ", ")))
	}
	return errs
}
