package tasks

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/fleet"
	"muster/history/happened"
	"muster/jobs"
	"muster/server/web"
)

type (
	pastEventsInput struct {
		Of     string `query:"of" doc:"id of a task or of a job; needed unless there is a time"`
		Who    string `query:"who" maxLength:"300" doc:"only orders of this operator, and what they began"`
		Event  string `query:"event" maxLength:"1000" doc:"only events of these names, such as halt,lift"`
		Zone   string `query:"zone"`
		Host   string `query:"host" doc:"only events of jobs on this host"`
		From   string `query:"from" doc:"RFC 3339; events at it or later"`
		To     string `query:"to" doc:"RFC 3339; events before it"`
		Cursor string `query:"cursor" doc:"the field next of the page before"`
		Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"500" doc:"most events of a page"`
	}
	pastEventsOutput struct{ Body api.PastEvents }
)

// kind is the name of an event.
var kind = regexp.MustCompile(`^[a-z][a-z-]{0,39}$`)

// filter returns the conditions, or all their mistakes.
func (in *pastEventsInput) filter() (happened.Filter, error) {
	f, wrong := aboutWhat(in.Of)
	if in.Of == "" && in.From == "" {
		wrong = append(wrong, web.Mistake("query.of", "name a task or a job, or say from when on"))
	}
	if f.Host != "" && in.Host != "" && f.Host != in.Host {
		wrong = append(wrong, web.Mistake("query.host", "%q: the job %s is on another host",
			web.Clip(in.Host), in.Of))
	}
	times, err := PastFilter{Host: in.Host, From: in.From, To: in.To}.filter()
	if err != nil {
		return f, err
	}
	f.Who, f.Zone, f.From, f.To = in.Who, in.Zone, times.From, times.To
	if in.Host != "" {
		f.Host = in.Host
	}
	if in.Zone != "" {
		wrong = append(wrong, web.Mistakes("query.zone", fleet.CheckName(in.Zone))...)
	}
	for name := range strings.SplitSeq(in.Event, ",") {
		switch {
		case kind.MatchString(name):
			f.Kinds = append(f.Kinds, name)
		case in.Event != "":
			wrong = append(wrong, web.Mistake("query.event", "%q: want names of events, such as "+
				"submit,halt,cancel", web.Clip(name)))
		}
	}
	if len(wrong) > 0 {
		return f, web.Refusal(wrong)
	}
	return f, nil
}

// pastEvents answers GET /v1/history/events.
func (s HistoryRoutes) pastEvents(ctx context.Context, in *pastEventsInput) (*pastEventsOutput,
	error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	if s.Find.History == nil {
		return nil, web.Problem(web.ErrNoHistory)
	}
	out := &pastEventsOutput{api.PastEvents{Events: []api.PastEvent{}}}
	if f.Task != "" {
		if seen, err := s.Rights.Sees(ctx, f.Task, f.Host); err != nil || !seen {
			return out, web.Problem(err)
		}
	}
	out.Body, err = s.happened(ctx, f, in.Cursor, in.Limit)
	if err == nil && f.Who != "" {
		out.Body.Unsaid, err = happened.IsUnsaid(ctx, s.Find.History, f)
	}
	return out, web.Problem(err)
}

// sightMax bounds the events that are read for one page of a caller who does not see all of them.
const sightMax = 40 * api.PageMax

// happened reads a page as the caller sees it. The cursor of a page is the place of the last event
// that was told, and not of the last one that was read: that would tell when something happened to
// somebody else.
func (s HistoryRoutes) happened(ctx context.Context, f happened.Filter, cursor string, most int) (
	page api.PastEvents, err error) {
	page.Events = []api.PastEvent{}
	whole := f.Task != "" || web.ViewOf(ctx).All() // a task or job in the question is seen
	if !whole {
		f.Of = s.near(ctx)
	}
	sees := s.Rights.Glance()
	for read := 0; ; {
		if read >= sightMax {
			return s.broken(page)
		}
		list, more, err := happened.List(ctx, s.Find.History, f, cursor, most)
		if err != nil {
			return page, err
		}
		for i, e := range list {
			seen := whole
			if !whole {
				if seen, err = seesEvent(ctx, sees, e.Happening); err != nil {
					return page, err
				}
			}
			if !seen {
				continue
			}
			page.Events = append(page.Events, e.PastEvent)
			page.Next = e.Cursor
			if len(page.Events) == most {
				if !more && i+1 == len(list) {
					page.Next = ""
				}
				return page, nil
			}
		}
		if !more {
			page.Next = ""
			return page, nil
		}
		read, cursor = read+len(list), list[len(list)-1].Cursor
	}
}

// broken returns a page for which too much would have to be read: with what was found or, if that
// is nothing, as a refusal. The next page begins behind the last event that was told.
func (s HistoryRoutes) broken(page api.PastEvents) (api.PastEvents, error) {
	if len(page.Events) > 0 {
		return page, nil
	}
	return page, huma.Error422UnprocessableEntity(fmt.Sprintf("none of the first %d events of that "+
		"time is of a host of yours: ask for a shorter time, a host, or a task", sightMax))
}

// near returns the hosts that a caller sees; nil: all.
func (s HistoryRoutes) near(ctx context.Context) []string {
	hosts := []string{}
	for _, r := range web.ViewOf(ctx).Reaches() {
		if r.Hosts.All() {
			return nil
		}
		hosts = slices.AppendSeq(hosts, r.Hosts.Names())
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// aboutWhat reads the id of a task or of a job; an empty text means neither.
func aboutWhat(text string) (happened.Filter, []error) {
	if text == "" {
		return happened.Filter{}, nil
	}
	if task, err := jobs.ParseTaskID(text); err == nil {
		return happened.Filter{Task: task}, nil
	}
	id, err := jobs.ParseID(text)
	if err != nil {
		return happened.Filter{}, []error{web.Mistake("query.of", "%q: want the id of a task, such as "+
			"0wcy7y2fb2, or of a job, such as 0wcy7y2fb2:fw001", web.Clip(text))}
	}
	return happened.Filter{Task: id.Task(), Host: id.Host()}, nil
}
