package kinds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/playbook"
	"muster/worker/veil"
)

// ansibleStep does a step of kind ansible: a playbook, which the node runs for the host. The
// connection of the attempt has shown before that the host can be reached, and serves to end what
// a killed playbook has left there.
type ansibleStep struct{ runStep }

func newAnsibleStep(h Hand) Kind {
	k := ansibleStep{runStep{onHost: onHost{h}}}
	k.send = k.play
	return k
}

// play runs the playbook, within the bound of c.
func (k ansibleStep) play(ctx context.Context, action scripts.Action, c remote.Command) (
	remote.Result, error) {
	spec := scripts.PlaybookOf(action)
	host := k.Job.Evidence(action).Grant.Host
	p := playbook.Play{Host: *host, File: spec.Playbook, Vars: spec.Vars,
		Secrets: map[string]seal.Text{}, Become: k.Secrets[scripts.BecomePassword], Groups: spec.Groups,
		Inventory: spec.Inventory, Vault: k.Secrets[spec.Vault],
		Scope: playbook.Scope{Tags: spec.Tags, SkipTags: spec.SkipTags, Check: spec.Dry != "",
			Diff: spec.Dry == scripts.OnlyDiff},
		Bound: c.Bound, Stop: c.Stop, Live: c.Live}
	for name, argument := range spec.Secrets {
		text, ok := k.Secrets[argument]
		if !ok {
			return remote.Result{ExitCode: -1}, &remote.Error{Op: "ansible", Kind: remote.KindInvalid,
				Err: fmt.Errorf("the secret %q is not in the task", argument)}
		}
		p.Secrets[name] = text
	}
	if spec.Vault != "" && p.Vault == "" {
		return remote.Result{ExitCode: -1}, &remote.Error{Op: "ansible", Kind: remote.KindInvalid,
			Err: fmt.Errorf("the secret %q, for the vault, is not in the task", spec.Vault)}
	}
	if k.Player == nil {
		return remote.Result{ExitCode: -1}, &remote.Error{Op: "ansible", Kind: remote.KindNode,
			Err: errors.New("this worker runs no playbooks")}
	}
	if err := k.alone(ctx, k.Job.Evidence(action).Grant); err != nil {
		return remote.Result{ExitCode: -1}, err
	}
	covers := veil.Of(k.Secrets)
	r, findable, err := k.Player(ctx, p)
	r.Output = covers.Output(r.Output)
	return r, k.swept(ctx, findable, covers.Error(err))
}

// alone ends what an earlier attempt has left on the host, or returns an error if something of it
// still works there: a worker that dies leaves a module of its play behind.
func (k ansibleStep) alone(ctx context.Context, g jobs.Grant) error {
	if g.Attempt <= 1 {
		return nil
	}
	said, err := k.Host.Run(ctx, remote.Command{Shell: playbook.Sweep(g.Host.Name), Bound: sweepTime})
	if err == nil && said.ExitCode != playbook.SweptAll {
		err = &remote.Error{Op: "ansible", Kind: remote.KindRunning, Sent: true,
			Err: errors.New("a play of an earlier attempt may still be at work on the host")}
	}
	return err
}

// sweepTime bounds the end of what a killed playbook has left on its host.
const sweepTime = 4 * time.Second

// swept ends what a killed playbook has left on its host, and returns the error of the step: that
// it was stopped, or ended at its bound, only if nothing of it is left. findable says that the host
// can know that.
func (k ansibleStep) swept(ctx context.Context, findable bool, err error) error {
	var e *remote.Error
	if !errors.As(err, &e) || !e.Sent ||
		e.Kind != remote.KindStopped && e.Kind != remote.KindTimeout {
		return err
	}
	name := k.Job.Evidence(scripts.Action{}).Grant.Host.Name
	said, asked := k.Host.Run(ctx, remote.Command{Shell: playbook.Sweep(name),
		Bound: sweepTime})
	doubt := *e
	switch {
	case asked == nil && said.ExitCode == playbook.SweptAll && findable:
		return e
	case asked == nil && said.ExitCode == playbook.SweptSome:
		doubt.Kind = remote.KindRunning
		doubt.Err = fmt.Errorf("%w, and a part of its task still runs on the host", e.Err)
	case asked == nil && said.ExitCode == playbook.SweptAll:
		doubt.Kind = remote.KindLost
		doubt.Err = fmt.Errorf("%w: whether its task, which has no module, still runs on the host is "+
			"not known", e.Err)
	case asked == nil:
		doubt.Kind = remote.KindLost
		doubt.Err = fmt.Errorf("%w: the host lacks ps or awk, so it is not known whether a part of it "+
			"still runs there", e.Err)
	default:
		doubt.Kind = remote.KindLost
		doubt.Err = fmt.Errorf("%w, and the host cannot be asked what is left there: %w", e.Err,
			remote.Cause(asked))
	}
	return &doubt
}
