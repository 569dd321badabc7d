package firing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"muster/access"
	"muster/api"
	"muster/events"
	"muster/fleet"
	"muster/internal/files"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/fault"
	"muster/server/web"
	"muster/triggers"
)

// fileMax bounds the file that a trigger names for an argument.
const fileMax = 64 << 20 // bytes

// ask submits the task of a firing under an id, or only asks what it would be. It works with the
// rights of the trigger: hosts that these do not show are not there.
func (f *Firer) ask(ctx context.Context, t triggers.Trigger, b triggers.Bound, id jobs.TaskID,
	dry bool) (api.Submitted, error) {
	ctx = web.WithSight(ctx, web.NewView(f.Rights(), access.Who{Principal: t.Principal()}))
	names, err := f.hosts(ctx, t, b)
	if err != nil {
		return api.Submitted{}, err
	}
	w := t.Work
	body := api.Submit{ID: string(id), Runbook: w.Runbook, On: fleet.Fold(names),
		Args: map[string]string{}, Files: map[string][]byte{}, Expire: w.Expire, DryRun: dry,
		Priority: w.Priority, Manner: api.Manner{Disruptive: w.Disruptive, Only: w.Only},
		Supersedes: w.Supersedes, Rollout: jobs.AskOf(w.Rollout),
		Timed: api.Timed{Window: w.Window, Expect: w.Expect}}
	if err := f.bind(t, b, &body); err != nil {
		return api.Submitted{}, err
	}
	return f.Submits.SubmitFor(ctx, Request{Body: body, Principal: t.Principal(), Reason: b.Reason(),
		Hold: w.Hold && !dry})
}

// hosts returns the hosts that an event means at a trigger, of those that the trigger sees.
func (f *Firer) hosts(ctx context.Context, t triggers.Trigger, b triggers.Bound) ([]string, error) {
	on := t.Work.Aim.On
	scene, err := f.Look.Scene(ctx, on)
	if err != nil {
		return nil, err
	}
	picked, err := scene.PickFor(on)
	if err != nil {
		return nil, fault.Refuse(fault.Each("on", err))
	}
	names, err := t.Narrow(b, picked.Hosts)
	if err != nil {
		return nil, fault.Refuse(fault.Each("on", err))
	}
	return names, nil
}

// bind puts the values of arguments into a request. A text of an event stays a value: the runbook
// checks it, and it becomes no text of a shell.
func (f *Firer) bind(t triggers.Trigger, b triggers.Bound, body *api.Submit) error {
	values := maps.Clone(b.Args)
	if values == nil {
		values = map[string]string{}
	}
	var wrong []error
	for _, a := range t.Work.Args {
		if a.Text != nil {
			values[a.Name] = *a.Text
		}
		if a.File == "" {
			continue
		}
		content, err := files.Read(a.File, fileMax)
		if err != nil {
			wrong = append(wrong, fault.Each("args."+a.Name, err)...)
		}
		body.Files[a.Name] = content
	}
	runbook, err := f.Catalog().Lookup(t.Work.Runbook)
	if err != nil {
		wrong = append(wrong, fault.Each("runbook", err)...)
		return fault.Refuse(wrong)
	}
	schema := triggers.SchemaOf(runbook)
	for name, value := range values {
		if schema.Secret(name) {
			wrong = append(wrong, fault.At("args."+name, "it is a secret, which no trigger can give"))
		}
		if _, bound := b.Args[name]; bound && schema.Takes(name) {
			body.Files[name] = []byte(value)
			continue
		}
		body.Args[name] = value
	}
	if len(wrong) > 0 {
		return fault.Refuse(wrong)
	}
	return nil
}

// descent returns the triggers whose tasks led to an event, or why that is not known. An event from
// elsewhere has no descent: nobody there knows of our tasks.
func (f *Firer) descent(ctx context.Context, e events.Event) (stems []string, doubt string,
	err error) {
	id := taskOf(e)
	if id == "" {
		return nil, "", nil
	}
	r, err := f.Book.OfTask(ctx, id)
	switch {
	case err == nil:
		return r.Stems, "", nil
	case !errors.Is(err, queue.ErrNotFound):
		return nil, "", err
	}
	i, err := f.Tasks.Task(ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return nil, fmt.Sprintf("Redis has forgotten task %s", id), nil
	case err != nil:
		return nil, "", err
	case triggers.IsPrincipal(i.Operator):
		return nil, fmt.Sprintf("task %s is of %s, and Redis has forgotten its firing", id,
			i.Operator), nil
	}
	return nil, "", nil
}

// taskOf returns the task that one of muster's own events names; empty: none.
func taskOf(e events.Event) jobs.TaskID {
	var body struct{ Task jobs.TaskID }
	if e.Source != events.Own || json.Unmarshal(e.Body, &body) != nil {
		return ""
	}
	return body.Task
}
