package notices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/history/outbox"
	"muster/internal/wording"
	"muster/jobs"
	"muster/notify"
	"muster/server/herald"
	"muster/server/web"
)

// Routes shows notifications.
type Routes struct {
	Outbox *outbox.Outbox // nil: this server keeps no history, or follows no rules
	Keeper *herald.Keeper
	// Sees reports whether a caller sees a task.
	Sees func(ctx context.Context, id jobs.TaskID, host string) (bool, error)
	Log  hclog.Logger
	Now  func() time.Time
}

type (
	listInput struct {
		State    string `query:"state" enum:"waiting,delivered,gone,expired"`
		Receiver string `query:"receiver"`
		Before   string `query:"before" doc:"only messages older than this one"`
		Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	}
	messageInput struct {
		Message string `path:"message"`
	}
	testInput struct {
		web.Asked
		User     string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Receiver string `path:"receiver"`
	}
	listOutput      struct{ Body api.MessageList }
	messageOutput   struct{ Body api.Message }
	receiversOutput struct{ Body api.NotifyReceivers }
)

// Routes registers the routes of the resource.
func (s Routes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/notify/messages", "List notifications, the newest first"), s.list)
	huma.Register(api, web.Get("/v1/notify/messages/{message}", "Show a notification"), s.show)
	huma.Register(api, web.Get("/v1/notify/receivers", "List the receivers of notifications"),
		s.receivers)
	huma.Register(api, web.Post("/v1/notify/receivers/{receiver}/test",
		"Send a marked message to a receiver"), s.test)
}

var errNone = huma.Error404NotFound("this server keeps no notifications: it needs a history, and " +
	"a file of rules: docs/NOTIFY.md")

// sees reports whether the caller sees all that a message concerns.
func (s Routes) sees(ctx context.Context, d outbox.Delivery) (bool, error) {
	if web.ViewOf(ctx).All() {
		return true, nil
	}
	if d.Tasks.Other || len(d.Tasks.IDs) == 0 {
		return false, nil
	}
	for _, id := range d.Tasks.IDs {
		if ok, err := s.Sees(ctx, id, ""); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// pagesMax bounds the pages that are read for one answer, most of which the caller may not see.
const pagesMax = 20

func (s Routes) list(ctx context.Context, in *listInput) (*listOutput, error) {
	if s.Outbox == nil {
		return nil, errNone
	}
	out := &listOutput{api.MessageList{Messages: []api.Message{}}}
	f := outbox.Filter{State: in.State, Receiver: in.Receiver, Before: in.Before, Most: in.Limit + 1}
	for range pagesMax {
		list, err := s.Outbox.List(ctx, f)
		if err != nil {
			return nil, web.Away(err.Error())
		}
		for _, d := range list[:min(len(list), in.Limit)] {
			seen, err := s.sees(ctx, d)
			if err != nil {
				return nil, web.Problem(err)
			}
			if seen {
				out.Body.Messages = append(out.Body.Messages, shown(d))
			}
			f.Before = d.ID
			if len(out.Body.Messages) == in.Limit {
				break
			}
		}
		out.Body.Next = f.Before
		if len(list) <= in.Limit && (len(list) == 0 || list[len(list)-1].ID == f.Before) {
			out.Body.Next = ""
			break
		}
		if len(out.Body.Messages) == in.Limit {
			break
		}
	}
	return out, nil
}

func (s Routes) show(ctx context.Context, in *messageInput) (*messageOutput, error) {
	if s.Outbox == nil {
		return nil, errNone
	}
	d, err := s.Outbox.Get(ctx, in.Message)
	seen := false
	if err == nil {
		if seen, err = s.sees(ctx, d); err != nil {
			return nil, web.Problem(err)
		}
	}
	switch {
	case errors.Is(err, outbox.ErrNotFound), err == nil && !seen:
		return nil, huma.Error404NotFound(fmt.Sprintf("there is no message %s, or it was forgotten",
			wording.Quote(in.Message)))
	case err != nil:
		return nil, web.Away(err.Error())
	}
	out := shown(d)
	// It was made from JSON; what cannot be read is left out.
	_ = json.Unmarshal([]byte(d.Body), &out.Body)
	return &messageOutput{out}, nil
}

func shown(d outbox.Delivery) api.Message {
	m := api.Message{ID: d.ID, Receiver: d.Receiver, Rule: d.Rule, Whats: strings.Split(d.Whats, ","),
		State: d.State, Created: jobs.Time{Time: d.Created}, Tries: d.Tries,
		At: jobs.Time{Time: d.At}, Error: d.Error, Title: d.Title}
	if d.State == outbox.Waiting {
		m.Next = jobs.Time{Time: d.Next}
	}
	return m
}

func (s Routes) receivers(ctx context.Context, _ *web.Nothing) (*receiversOutput, error) {
	if s.Outbox == nil {
		return nil, errNone
	}
	out := &receiversOutput{api.NotifyReceivers{Receivers: []api.NotifyReceiver{}}}
	rules := s.Keeper.Rules()
	out.Body.Complaint = s.Keeper.Complaint()
	if rules == nil {
		return out, nil
	}
	tallies, err := s.Outbox.Tallies(ctx)
	if err != nil {
		return nil, web.Away(err.Error())
	}
	for _, r := range rules.Receivers() {
		one := api.NotifyReceiver{Name: r.Name, Kind: r.Kind(), Place: herald.Place(r),
			Rules: []string{}, Counts: map[string]int{}}
		for _, rule := range rules.Rules() {
			if slices.Contains(rule.To, r.Name) {
				one.Rules = append(one.Rules, rule.Name)
			}
		}
		for _, t := range tallies {
			if t.Receiver != r.Name {
				continue
			}
			one.Counts[t.State] = t.Count
			if t.State == outbox.Waiting {
				one.Waiting = jobs.Time{Time: t.Oldest}
			}
		}
		out.Body.Receivers = append(out.Body.Receivers, one)
	}
	return out, nil
}

// test puts a marked message into the outbox, so that it goes the way of all others.
func (s Routes) test(ctx context.Context, in *testInput) (*messageOutput, error) {
	if s.Outbox == nil {
		return nil, errNone
	}
	who, _, err := web.Operator(in.Caller(), "", in.User)
	if err != nil {
		return nil, err
	}
	rules := s.Keeper.Rules()
	if rules == nil {
		return nil, errNone
	}
	if _, known := rules.Receiver(in.Receiver); !known {
		return nil, huma.Error404NotFound(fmt.Sprintf("there is no receiver %s in the rules in force",
			wording.Quote(in.Receiver)))
	}
	m := notify.TestMessage(in.Receiver, who, s.Now())
	d := outbox.Delivery{ID: m.ID, Receiver: in.Receiver, Rule: m.Rule, Whats: string(notify.Test),
		State: outbox.Waiting, Created: s.Now(), Next: s.Now(), Tasks: notify.Tasks{Other: true},
		Title: m.Title, Body: string(m.JSON())}
	if err := s.Outbox.Add(ctx, d); err != nil {
		return nil, web.Away(err.Error())
	}
	s.Log.Info("a test message was ordered", "receiver", in.Receiver, "operator", who, "id", m.ID)
	return &messageOutput{shown(d)}, nil
}
