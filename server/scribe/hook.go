package scribe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/audit"
	"muster/server/web"
)

// peekMax bounds the bodies in which the hook looks for a reason.
const peekMax = 1 << 20 // bytes

// Hook writes the entries of the requests of the API. It is a middleware of all routes.
type Hook struct{ Scribe *Scribe }

// A Line is the request that a context belongs to, as the log sees it.
type Line struct {
	who     person
	verb    string
	object  string
	entries int
}

// person is somebody who asks, with where from.
type person struct{ name, proof, from string }

type lineKey struct{}

// lineOf returns the line of a context; nil: nobody has sent a request.
func lineOf(ctx context.Context) *Line {
	l, _ := ctx.Value(lineKey{}).(*Line)
	return l
}

// Middleware writes the entry of an order before the route is called, and its outcome after it.
func (h Hook) Middleware(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	r := ruleOf(op.Method, op.Path)
	req, w := humago.Unwrap(ctx)
	x, ok := w.(*web.Exchange)
	if !ok || h.Scribe == nil {
		next(ctx)
		return
	}
	who := personOf(x.Who, req)
	if r.kind == asks {
		next(ctx)
		if x.Status == http.StatusForbidden {
			h.refused("read", req.URL.Path, who, x.Status)
		}
		return
	}
	in, body := peek(ctx, req)
	if body != nil {
		ctx = withBody{ctx, body}
	}
	if said := cmp.Or(in.As, req.Header.Get("X-Muster-User")); x.Who.Claims && said != "" {
		who.name, who.proof = said, proofClaimed
	}
	if in.Check || in.DryRun {
		next(ctx)
		if x.Status == http.StatusForbidden {
			h.refused(r.verb, objectOf(r.object, ctx, in), who, x.Status)
		}
		return
	}
	l := &Line{who: who, verb: r.verb, object: objectOf(r.object, ctx, in)}
	ctx = huma.WithValue(ctx, lineKey{}, l)
	if r.kind == planned {
		next(ctx)
		if l.entries == 0 && x.Status >= http.StatusBadRequest {
			h.refused(l.verb, l.object, who, x.Status)
		}
		return
	}
	h.order(ctx, next, ordering{r, l, x, in.Reason})
}

// ordering is an order of a route, as it came.
type ordering struct {
	rule   rule
	line   *Line
	x      *web.Exchange
	reason string
}

// order writes the entry, calls the route and writes the outcome.
func (h Hook) order(ctx huma.Context, next func(huma.Context), o ordering) {
	d := o.line.draft()
	d.Private.Reason = o.reason
	id, err := h.Scribe.Write(ctx.Context(), d, o.rule.kind == stops)
	if err != nil {
		web.WriteProblem(o.x, answerOf(err))
		return
	}
	result := audit.Failed // of a route that panics
	defer func() {
		end := audit.End{Result: result, Status: o.x.Status}
		h.Scribe.Keep(o.line.outcome(o.line.verb, id, end))
	}()
	next(ctx)
	result = resultOf(o.x.Status)
}

// resultOf returns what an answer says about the effect of a request. After an error of the server
// it is open how much was done.
func resultOf(status int) string {
	switch {
	case status < http.StatusBadRequest:
		return audit.Done
	case status < http.StatusInternalServerError && status != statusGone:
		return audit.Refused
	}
	return audit.Failed
}

// statusGone is the status of a client that went away.
const statusGone = 499

// answerOf returns the answer for an order whose entry is not durable.
func answerOf(err error) error {
	if errors.Is(err, context.Canceled) {
		return web.Problem(err)
	}
	return web.Away(err.Error())
}

// draft returns an entry of the line.
func (l *Line) draft() audit.Draft {
	l.entries++
	return audit.Draft{Name: l.who.name, Private: audit.Private{From: l.who.from},
		Entry: audit.Entry{Kind: audit.KindOrder, Proof: l.who.proof, Verb: l.verb, Object: l.object}}
}

func (l *Line) outcome(verb, of string, end audit.End) audit.Draft {
	end.Of = of
	return audit.Draft{Name: l.who.name, Entry: audit.Entry{Kind: audit.KindOutcome,
		Proof: l.who.proof, Verb: verb, Object: l.object, End: &end}}
}

// Refused writes that a request was refused before its route was called, for want of a right.
func (h Hook) Refused(ctx huma.Context, status int) {
	req, w := humago.Unwrap(ctx)
	x, ok := w.(*web.Exchange)
	if !ok || h.Scribe == nil {
		return
	}
	verb, object, op := "read", req.URL.Path, ctx.Operation()
	if r := ruleOf(op.Method, op.Path); r.kind != asks {
		verb, object = r.verb, objectOf(r.object, ctx, peeked{})
	}
	h.refused(verb, object, personOf(x.Who, req), status)
}

func (h Hook) refused(verb, object string, who person, status int) {
	h.Scribe.Refused(audit.Draft{Name: who.name, Private: audit.Private{From: who.from},
		Entry: audit.Entry{Proof: who.proof, Verb: verb, Object: object,
			End: &audit.End{Result: resultOf(status), Status: status}}})
}

// proofClaimed says that nothing proves a name: it was said in muster demo.
const proofClaimed = "claimed"

// personOf returns who sends a request, as the guard has found out.
func personOf(c web.Caller, r *http.Request) person {
	p := person{name: c.Name, from: r.RemoteAddr, proof: c.Proof()}
	if c.Local {
		p.from = "unix socket"
	}
	if id := cmp.Or(c.Token, c.Session); id != "" {
		p.proof += " " + id
	}
	return p
}

// peeked has the parts of a body that an entry names. No value of an argument is among them.
type peeked struct {
	Reason string `json:"reason"`
	As     string `json:"as"`
	Name   string `json:"name"`
	ID     string `json:"id"`
	On     string `json:"on"`
	Check  bool   `json:"check"`
	DryRun bool   `json:"dry_run"`
}

// peek looks into a body of JSON. It returns the body anew for the route; nil: it has not touched
// it. A body that is no JSON, or too long to look into, has no parts; the route judges it.
func peek(ctx huma.Context, r *http.Request) (in peeked, body io.Reader) {
	op := ctx.Operation()
	if r.Body == nil || op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return in, nil
	}
	// A server that cannot set deadlines is one of a test.
	_ = ctx.SetReadDeadline(time.Now().Add(web.BodyTimeout))
	data, err := io.ReadAll(io.LimitReader(ctx.BodyReader(), peekMax+1))
	switch {
	case err != nil:
		return in, io.MultiReader(bytes.NewReader(data), broken{err})
	case len(data) > peekMax:
		return in, io.MultiReader(bytes.NewReader(data), ctx.BodyReader())
	}
	_ = json.Unmarshal(data, &in) // the route says what is wrong with it
	return in, bytes.NewReader(data)
}

// broken is the rest of a body that could not be read.
type broken struct{ err error }

// Read returns the error again.
func (b broken) Read([]byte) (int, error) { return 0, b.err }

// request is a context of a request, under a name that no method has.
type request huma.Context

// withBody is a request whose body was read already.
type withBody struct {
	request
	body io.Reader
}

// BodyReader returns the body anew.
func (w withBody) BodyReader() io.Reader { return w.body }

// Unwrap returns the context below.
func (w withBody) Unwrap() huma.Context { return w.request }

// objectOf fills a pattern with parameters. A name that is not given leaves the kind alone.
func objectOf(pattern string, ctx huma.Context, in peeked) string {
	var out strings.Builder
	for rest := pattern; ; {
		before, after, found := strings.Cut(rest, "{")
		out.WriteString(before)
		if !found {
			return strings.TrimSuffix(out.String(), "/")
		}
		name, behind, _ := strings.Cut(after, "}")
		switch name {
		case "body.name":
			out.WriteString(in.Name)
		case "body.id":
			out.WriteString(in.ID)
		case "body.on":
			out.WriteString(in.On)
		default:
			out.WriteString(ctx.Param(name))
		}
		rest = behind
	}
}
