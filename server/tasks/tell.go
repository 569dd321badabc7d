package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/server/fold"
	"muster/server/waits"
	"muster/server/web"
)

const (
	pieceMax     = 256 << 10   // bytes of output in one event
	summaryEvery = time.Second // between two summaries of a task at least
)

// FollowRoutes lets clients follow the hosts of a task: their output, and the ends of its jobs.
type FollowRoutes struct {
	Reads   Reads
	Streams *Streams
	Find    Finder
	Groups  Groups
	Why     *waits.Reader
}

// Routes registers the routes of the resource.
func (s FollowRoutes) Routes(api huma.API) {
	const task = "/v1/tasks/{task}"
	huma.Register(api, web.Get(task+"/summary", "Group jobs that ended in the same way"), s.summary)
	huma.Register(api, web.Raw(web.Get(task+"/summaries", "Follow groups of ended jobs"),
		web.EventStream), s.summaries)
	huma.Register(api, web.Raw(web.Get(task+"/output", "Follow the output of all hosts"),
		web.EventStream),
		s.taskOutput)
	huma.Register(api, web.Raw(web.Get("/v1/events", "Follow events"), web.EventStream),
		s.Streams.events)
}

type taskOutputInput struct {
	Task   string `path:"task"`
	Follow bool   `query:"follow" default:"true" doc:"stay until the task has ended"`
	Last   string `header:"Last-Event-ID" doc:"id of the last event that the caller has got"`
}

// taskOutput answers with the output of all hosts of a task, as Server-Sent Events: first the known
// output, then the new. A client that returns with the id of an event may get some of it twice, and
// knows its own part by the places.
func (s FollowRoutes) taskOutput(ctx context.Context, in *taskOutputInput) (
	*huma.StreamResponse, error) {
	at, err := parsePositions(in.Last)
	t, err := s.streamedTask(ctx, in.Task, web.Mistakes("header.Last-Event-ID", err))
	if err != nil {
		return nil, err
	}
	return s.Streams.open(func(ctx context.Context, st *stream) error {
		return s.followed(ctx, st, newFollower(s.Reads, t, at, &teller{st: st}), in.Follow)
	})
}

type summariesInput struct {
	Task    string `path:"task"`
	Excerpt int    `query:"excerpt" minimum:"0" maximum:"163840" default:"4096" doc:"bytes of output shown of a group"`
}

// summaries answers with a summary of a task whenever jobs have ended, at most one a
// second, and with the last one when the task has ended.
func (s FollowRoutes) summaries(ctx context.Context, in *summariesInput) (
	*huma.StreamResponse, error) {
	t, err := s.streamedTask(ctx, in.Task, nil)
	if err != nil {
		return nil, err
	}
	return s.Streams.open(func(ctx context.Context, st *stream) error {
		f := newFollower(s.Reads, t, nil, &adder{groups: s.Groups, st: st,
			folder: fold.New(in.Excerpt),
			heard:  map[jobs.ID]jobs.Output{}})
		f.deaf = true
		return s.followed(ctx, st, f, true)
	})
}

// streamedTask returns the task of a stream, or all mistakes of the question.
func (s FollowRoutes) streamedTask(ctx context.Context, text string, wrong []error) (
	jobs.TaskInfo, error) {
	id, err := jobs.ParseTaskID(text)
	if wrong = slices.Concat(web.Mistakes("path.task", err), wrong); len(wrong) > 0 {
		return jobs.TaskInfo{}, web.Refusal(wrong)
	}
	t, err := s.Reads.Tasks.Task(ctx, id)
	return t, s.Find.Gone(ctx, id, err)
}

// followed passes the news of a follower on to a client, until the task has ended or the client or
// the server goes. Its only errors are those of writing to the client.
func (s FollowRoutes) followed(ctx context.Context, st *stream, f *follower, stay bool) error {
	if err := st.open(); err != nil {
		return err
	}
	begun := false
	for {
		step := f.goOn
		if !begun {
			step = f.begin
		}
		err := step(ctx)
		next := streamPoll
		switch {
		case st.broken != nil || ctx.Err() != nil:
			return st.broken
		case err != nil:
			// The client learns why it hears nothing, and need not connect again.
			if err := st.write(comment("trouble: " + err.Error())); err != nil {
				return err
			}
			next = streamRetry
		case f.over() || !stay:
			return st.tellOne(api.EventOver, f.task)
		default:
			begun = true
		}
		if f.behind {
			next = 0
		}
		if !s.Streams.Until.Pause(ctx, next) {
			return nil
		}
	}
}

// A teller writes output and ends of jobs to a client.
type teller struct {
	st  *stream
	now positions // how far all was told before this round
	b   bytes.Buffer
}

func (t *teller) said(id jobs.ID, o jobs.Output) error {
	for _, p := range o {
		for len(p.Data) > 0 {
			n := min(len(p.Data), pieceMax)
			if err := t.event(api.EventSaid, api.Said{Job: id, Host: id.Host(), At: p.At,
				Data: p.Data[:n]}); err != nil {
				return err
			}
			p.At, p.Data = p.At+int64(n), p.Data[n:]
		}
	}
	return nil
}

func (t *teller) ended(j jobs.JobInfo) error {
	return t.event(api.EventEnded, api.JobEnd{Job: j.ID, Host: j.Host, Outcome: j.Outcome,
		ExitCode: j.ExitCode, Error: j.Error})
}

func (t *teller) rest(_ context.Context, _ jobs.TaskInfo, at positions) error {
	t.now = maps.Clone(at)
	return t.flush()
}

func (t *teller) event(name string, v any) error {
	if len(t.now) > 0 {
		fmt.Fprintf(&t.b, "id: %s\n", t.now)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	fmt.Fprintf(&t.b, "event: %s\ndata: %s\n\n", name, data)
	if t.b.Len() < streamBurst {
		return nil
	}
	return t.flush()
}

// flush sends the events of this round. If there were none for long, it sends a sign of life.
func (t *teller) flush() error {
	defer t.b.Reset()
	return t.st.say(t.b.Bytes())
}

// say writes a text. If the text is empty, it writes a sign of life now and then.
func (st *stream) say(text []byte) error {
	if len(text) == 0 {
		if time.Since(st.spoke) < heartbeat {
			return nil
		}
		text = comment("alive")
	}
	st.spoke = time.Now()
	st.broken = st.write(text)
	return st.broken
}

// tellOne writes one event without an id.
func (st *stream) tellOne(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return st.say(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data))
}

// An adder writes summaries of a task to a client.
type adder struct {
	groups Groups
	st     *stream
	folder *fold.Folder
	heard  map[jobs.ID]jobs.Output // of jobs that are about to end
	told   time.Time
	count  int // of jobs, when it was told
}

func (a *adder) said(id jobs.ID, o jobs.Output) error {
	a.heard[id] = append(a.heard[id], o...)
	return nil
}

func (a *adder) ended(j jobs.JobInfo) error {
	a.folder.Add(j, plain(a.heard[j.ID].Theirs(), 0), a.groups.Stock.Address(j.Host))
	delete(a.heard, j.ID)
	return nil
}

func (a *adder) rest(ctx context.Context, t jobs.TaskInfo, _ positions) error {
	over := t.State == jobs.TaskEnded
	news := a.told.IsZero() || a.folder.Count() != a.count
	if !over && (!news || time.Since(a.told) < summaryEvery) {
		return a.st.say(nil)
	}
	groups, err := a.groups.Show(ctx, t.Zones, a.folder)
	if err != nil {
		return err
	}
	a.told, a.count = time.Now(), a.folder.Count()
	return a.st.tellOne(api.EventSummary, api.Summary{Task: t, Groups: groups})
}
