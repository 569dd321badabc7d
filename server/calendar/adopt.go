package calendar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs/queue"
	"muster/server/web"
	"muster/trust"
	"muster/windows"
)

// This file lets a person vouch for a timetable that no server has signed (docs/TRUST.md). Servers
// change only a timetable that they believe: else one change would sign all that somebody has
// invented.

type adoptInput struct {
	web.Asked
	User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
	Body api.AdoptRequest
}

// proven refuses a change of a timetable that is not believed.
func (c *Calendar) proven(ctx context.Context, how manner) error {
	if how.check || c.Doubt(ctx) == nil {
		return nil
	}
	c.forget() // a server may have signed it meanwhile
	doubt := c.Doubt(ctx)
	if doubt == nil {
		return nil
	}
	return huma.Error409Conflict(fmt.Sprintf("the timetable in Redis is not believed: %v; nothing "+
		"was changed: look at it (`muster windows ls`); if it is right, `muster windows adopt "+
		"--reason …` has it signed", doubt))
}

// hashOf returns the hash of all that a timetable says.
func hashOf(t windows.Timetable) string {
	text, err := json.Marshal(t)
	if err != nil {
		return ""
	}
	return trust.HashOf(text)
}

// adopt answers POST /v1/windows/adopt.
func (s Windows) adopt(ctx context.Context, in *adoptInput) (*changedOutput, error) {
	b := in.Body
	g, wrong := web.GiverOf(b.OrderRequest, "adopted", in.Caller(), in.User)
	if g.Reason == "" {
		wrong = append(wrong, web.Mistake("body.reason", "a reason is needed: who reads the audit log "+
			"must learn why somebody vouched for it"))
	}
	if b.Hash == "" && !b.Discard {
		wrong = append(wrong, web.Mistake("body", "want the hash of the timetable that was shown: "+
			"`muster windows adopt` sends it"))
	}
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	s.Calendar.forget()
	table, book, err := s.Calendar.Kept(ctx)
	doubt := s.Calendar.Doubt(ctx)
	switch {
	case errors.Is(err, ErrUnread) && !b.Discard:
		return nil, huma.Error409Conflict(fmt.Sprintf("%v; to sign an empty one in its place, say "+
			"--discard, and apply the files then", err))
	case err != nil && !errors.Is(err, ErrUnread):
		return nil, err
	case doubt == nil:
		return &changedOutput{api.WindowsChanged{Version: table.Version, Already: true,
			Notes: []string{}}}, nil
	case !b.Discard && b.Hash != hashOf(table):
		return nil, huma.Error409Conflict("the timetable was changed since it was shown: look at it " +
			"again before you vouch for it")
	}
	next := table
	if b.Discard {
		next = windows.Timetable{Version: table.Version, Mark: table.Mark}
	}
	out := api.WindowsChanged{Notes: []string{}}
	if book != nil {
		then, settled, err := settle(next, book, s.Now())
		if err != nil {
			return nil, err
		}
		next, out.Change = then, book.Compare(settled)
	}
	e := event("windows-adopted", "windows", g)
	e.Detail["hash"], e.Detail["discarded"] = hashOf(next), b.Discard
	e.Detail["was"] = doubt.Error()
	out.Version, err = s.Calendar.Times.SetTimetable(ctx, next, e)
	if errors.Is(err, queue.ErrChanged) {
		return nil, huma.Error409Conflict("somebody else has changed the timetable meanwhile: look at " +
			"it again before you vouch for it")
	}
	if err != nil {
		return nil, web.Problem(err)
	}
	s.Calendar.forget()
	web.LogOrder(s.Log, "the timetable is adopted", g, "version", out.Version, "discarded", b.Discard,
		"was", doubt)
	return &changedOutput{out}, nil
}

// settle returns a timetable that comes into force, and its book.
func settle(t windows.Timetable, before *windows.Book, now time.Time) (windows.Timetable,
	*windows.Book, error) {
	next, book, err := t.Settle(before, now.UTC().Truncate(time.Second))
	if err != nil {
		return t, nil, web.Refusal(web.Mistakes("body", err))
	}
	return next, book, nil
}
