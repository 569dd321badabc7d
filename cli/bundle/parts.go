package bundle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/cli/doctor"
	"muster/jobs"
)

// The most lines of lists in which the newest come first.
const (
	tasksMax = 100
	auditMax = 200
)

// A reader reads one part: a text, or a value that becomes JSON.
type reader struct {
	name, what string
	read       func(ctx context.Context) (any, error)
}

// readers lists the parts, in the order of the bundle.
func (p site) readers() []reader {
	return []reader{
		{"versions.json", "this muster, its modules, and the system", p.versions},
		{"configuration.json", "the configuration, without secrets", p.configuration},
		{"doctor.json", "what muster doctor finds", p.doctor},
		{"redis.json", "INFO and settings of each Redis", p.redis},
		{"logs.txt", "the last lines of the logs", p.logs},
		{"whoami.json", "who made the bundle, and with which rights", ask[api.Whoami](p, "/v1/whoami")},
		{"health.json", "what the server says of itself", p.health},
		{"nodes.json", "nodes, jobs in hand, duties", ask[api.NodeList](p, "/v1/nodes")},
		{"zones.json", "the queue of each zone", ask[api.QueueInfo](p, "/v1/queue")},
		{"agreed.json", "whether Redis has lost what was agreed", p.agreed},
		{"history.json", "how far history is", p.history},
		{"tasks.json", fmt.Sprintf("the newest %d tasks, a line each", tasksMax), p.tasks},
		{"audit.json", fmt.Sprintf("the newest %d entries of the audit log, a line each", auditMax),
			p.audit},
		{"auditstate.json", "how far the audit log and its sinks are",
			ask[api.AuditState](p, "/v1/audit/state")},
		{"metrics.txt", "the metrics of the server", p.metrics},
	}
}

// collect reads all parts, covers secrets, and notes what could not be read.
func (p site) collect(ctx context.Context, scrub *scrubber) (*collection, error) {
	c := &collection{Manifest{Made: now(p.s), Version: cli.Version, Parts: []Part{},
		LeftOut: []LeftOut{}}, map[string][]byte{}}
	var away *cli.AwayError
	for _, r := range p.readers() {
		asks := !strings.Contains(local, " "+r.name+" ")
		if away != nil && asks {
			c.leave(r.name, "the server does not answer, see above")
			continue
		}
		v, err := r.read(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if asks {
				errors.As(err, &away)
			}
			c.leave(r.name, scrub.text(err.Error()))
			continue
		}
		text, is := v.(string)
		out := []byte(scrub.text(text))
		if !is {
			if out, err = scrub.json(v); err != nil {
				return nil, err
			}
		}
		c.add(r.name, r.what, out)
	}
	c.Covered = scrub.covered
	return c, nil
}

// local lists the parts for which the server need not answer.
const local = " versions.json configuration.json doctor.json redis.json logs.txt "

// versions describes this program and its machine.
func (p site) versions(context.Context) (any, error) {
	out := struct {
		Muster  string            `json:"muster"`
		Go      string            `json:"go"`
		System  string            `json:"system"`
		CPUs    int               `json:"cpus"`
		Modules map[string]string `json:"modules"`
	}{cli.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(),
		map[string]string{}}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, m := range b.Deps {
			out.Modules[m.Path] = m.Version
		}
	}
	return out, nil
}

func (p site) configuration(context.Context) (any, error) {
	out := struct {
		Wrong  string         `json:"wrong,omitempty"`
		Values map[string]any `json:"values"`
	}{Values: configurationOf(p.set)}
	if p.wrong != nil {
		out.Wrong = p.wrong.Error()
	}
	return out, nil
}

func (p site) doctor(ctx context.Context) (any, error) {
	return doctor.Look(ctx, p.s, p.flags.conf), nil
}

// ask returns a reader of the answer to a question. Fields that its type does not name are left
// out.
func ask[T any](p site, path string) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		var answer T
		err := p.s.Get(ctx, path, nil, &answer)
		return answer, err
	}
}

// health reads also the answer of a server that cannot work.
func (p site) health(ctx context.Context) (any, error) {
	return doctor.Health(ctx, p.s)
}

// agreed says which parts Redis has lost. The parts themselves hold words of people.
func (p site) agreed(ctx context.Context) (any, error) {
	var answer struct {
		Lost jobs.AgreedLost `json:"lost"`
	}
	err := p.s.Get(ctx, "/v1/agreed", nil, &answer)
	return answer, err
}

// history says how far the events are stored. A server without history is no fault.
func (p site) history(ctx context.Context) (any, error) {
	var answer api.HistoryState
	err := p.s.Get(ctx, "/v1/history/state", nil, &answer)
	if err != nil && strings.Contains(err.Error(), "keeps no history") {
		return map[string]string{"none": err.Error()}, nil
	}
	return answer, err
}

// A headline is a task in one line. Arguments and reasons are no part of it.
type headline struct {
	Task      jobs.TaskID    `json:"task"`
	Runbook   string         `json:"runbook"`
	Operator  string         `json:"operator"`
	State     jobs.TaskState `json:"state"`
	Total     int            `json:"total"`
	Running   int            `json:"running"`
	Outcomes  jobs.Counts    `json:"outcomes"`
	Zones     []string       `json:"zones"`
	Forgotten bool           `json:"forgotten,omitempty"`
	Cancelled bool           `json:"cancelled"`
	Paused    bool           `json:"paused"`
	Chain     jobs.TaskID    `json:"chain,omitempty"`
	jobs.Span
}

func (p site) tasks(ctx context.Context) (any, error) {
	list, err := p.s.Tasks(ctx, tasksMax)
	out := make([]headline, len(list))
	for i, t := range list {
		out[i] = headline{t.Task, t.Runbook, t.Operator, t.State, t.Total, t.Running, t.Outcomes,
			t.Zones, t.Forgotten, t.Cancelled != "", t.Paused != "", t.Chain, t.Span}
	}
	return out, err
}

// An entry of the audit log in one line, without the words of people.
type entry struct {
	Seq    int64           `json:"seq"`
	At     jobs.Time       `json:"at"`
	Kind   string          `json:"kind"`
	Who    string          `json:"who"`
	Verb   string          `json:"verb"`
	Object string          `json:"object,omitempty"`
	Ended  *api.AuditEnded `json:"ended"`
	Server string          `json:"server,omitempty"`
	Late   string          `json:"late,omitempty"`
	Times  int64           `json:"times,omitempty"`
}

func (p site) audit(ctx context.Context) (any, error) {
	var page api.AuditPage
	q := url.Values{"limit": {strconv.Itoa(auditMax)}}
	err := p.s.Get(ctx, "/v1/audit", q, &page)
	out := make([]entry, len(page.Entries))
	for i, e := range page.Entries {
		out[i] = entry{e.Seq, e.At, e.Kind, e.Who, e.Verb, e.Object, e.Ended, e.Server, e.Late, e.Times}
	}
	return out, err
}

func (p site) metrics(ctx context.Context) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.CallTimeout)
	defer cancel()
	r, err := p.s.Send(ctx, cli.Call{Method: http.MethodGet, Path: "/metrics",
		Bound: cli.CallTimeout})
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := p.s.ReadAll(r.Body)
	return string(text), err
}
