package attempt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"muster/fleet"
	"muster/internal/seal"
	"muster/internal/secretref"
	"muster/internal/wording"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/veil"
	"muster/worker/verdict"
	"muster/worker/warden"

	sources "muster/worker/secrets"
)

// This file gets the secrets of a job before any of its steps: those that the task carries, sealed,
// and those to which it has references.

// unseal opens or finds the secrets of the job.
func (e entry) unseal(ctx context.Context) error {
	a := e.at
	var err error
	a.secrets.texts, err = a.plan.Book.OpenSecrets(func(argument, sealed string) (seal.Text, error) {
		ref, ok := secretref.Cut(sealed)
		switch {
		case ok:
			return e.fetch(ctx, argument, ref, a.grant.Host)
		case a.env.Unseal == nil:
			return "", errNoSecrets
		}
		text, err := a.env.Unseal(string(a.grant.Job.Task()), argument, sealed)
		if err != nil {
			err = &sealedError{err}
		}
		return text, err
	})
	if a.secrets.veil = veil.Of(a.secrets.texts); len(a.secrets.texts) > 0 {
		a.transcript.Live.Silence() // two pieces of the live output may hold one half of a secret each
	}
	return err
}

// A sealedError is the error of a secret that this node cannot open.
type sealedError struct{ error }

func (e *sealedError) Unwrap() error { return e.error }

// passwordOf returns the password of sudo on another host of the task; it has none if the task has
// none. A reference is resolved for that host, because each host may have a password of its own.
func (e entry) passwordOf(ctx context.Context, h fleet.Host) (its secrets, err error) {
	text := e.at.secrets.texts[scripts.BecomePassword]
	if ref, is := secretref.Cut(e.at.plan.Book.Values.Secrets[scripts.BecomePassword]); is {
		if text, err = e.fetch(ctx, scripts.BecomePassword, ref, &h); err != nil {
			return its, err
		}
	}
	if text == "" {
		return its, nil
	}
	its.texts = map[string]seal.Text{scripts.BecomePassword: text}
	return secrets{its.texts, veil.Of(its.texts)}, nil
}

// fetch finds the secret of a reference for a host.
func (e entry) fetch(ctx context.Context, argument, ref string, h *fleet.Host) (seal.Text, error) {
	a := e.at
	if a.env.Fetch == nil || h == nil {
		return "", errors.New("this node resolves no references")
	}
	ask := sources.Ask{Reference: ref, Runbook: a.plan.Book.Runbook, Host: *h,
		Signed: errors.New("this node asks for no orders: give it a folder trust")}
	if a.env.Trust != nil {
		ask.Signed = a.env.Trust.Holds(ctx, a.zone, a.grant, a.plan.Spec)
		if ask.Signed != nil && !errors.As(ask.Signed, new(*warden.Doubt)) {
			return "", &sources.AwayError{Why: fmt.Errorf("the order cannot be examined: %w", ask.Signed)}
		}
	}
	text, err := a.env.Fetch(ctx, ask)
	if err == nil && argument == scripts.BecomePassword {
		if err = text.CheckLine(); err != nil {
			return "", fmt.Errorf("the secret of %s, as the password of sudo, %w", ref, err)
		}
	}
	return text, err
}

// sealedEnd returns the result of a job some of whose secrets are not there. No step was started.
// The job waits if only sources that do not answer are in the way; that is no failure, and no try
// counts.
func (e entry) sealedEnd(err error) jobs.Result {
	f := e.at.evidence()
	if onlyAway(err) {
		return f.NotStarted(verdict.Hindrance{Ruled: &verdict.Ruled{Soon: true, Told: true},
			Why:      "a secret cannot be had yet: " + wording.ErrorLine(err),
			Disturbs: true, // a step of an earlier attempt may, so the host stays locked then
		})
	}
	words := "the secrets of the task cannot be had on this node: " + wording.ErrorLine(err)
	if errors.As(err, new(*sealedError)) || errors.Is(err, errNoSecrets) {
		words += "; give all servers and nodes the same secrets.key, then retry"
	}
	return f.Doubt(f.End(jobs.Failed, jobs.ClassOperator, words))
}

// onlyAway reports whether all of the joined errors come from sources that do not answer.
func onlyAway(err error) bool {
	var many interface{ Unwrap() []error }
	if !errors.As(err, &many) {
		return errors.As(err, new(*sources.AwayError))
	}
	return !slices.ContainsFunc(many.Unwrap(), func(one error) bool { return !onlyAway(one) })
}
