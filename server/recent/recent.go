// Package recent keeps answers of the API for a moment, so that many open pages that show the same
// cost as much as one. It shares answers among callers from whom nothing is hidden, each of whom
// was let in by the policy of now; whoever sees a part of the house is answered alone.
//
// Floor 5: may import server/web and below.
package recent

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/singleflight"

	"muster/server/web"
)

const (
	// share bounds the making of an answer again and again: it takes at most 1/20 of the time.
	share = 20
	// least bounds how long every answer is kept. A caller that wants a newer one names an instant.
	least = 5 * time.Second
	// most bounds all answers that are kept.
	most = 32 << 20 // bytes
)

// Paths returns the paths whose answers depend on the path, the query and the view of the caller,
// and on nothing else about the caller.
func Paths() map[string]bool {
	return map[string]bool{
		"/v1/tasks": true, "/v1/tasks/{task}": true, "/v1/tasks/{task}/jobs": true,
		"/v1/tasks/{task}/summary": true, "/v1/queue": true, "/v1/nodes": true, "/v1/pauses": true,
		"/v1/limits": true, "/v1/groups": true, "/v1/lanes": true, "/v1/gates": true, "/v1/history": true,
	}
}

// personal names the parameter of questions about their caller.
const personal = "mine"

// An Answers keeps answers.
type Answers struct {
	now    func() time.Time
	paths  map[string]bool
	flight singleflight.Group

	mu   sync.Mutex
	kept map[string]*answer // by path and query
	size int                // bytes of all
}

// New returns an Answers that keeps nothing yet.
func New(now func() time.Time) *Answers {
	return &Answers{now: now, paths: Paths(), kept: map[string]*answer{}}
}

// An answer was given to one caller.
type answer struct {
	begun, until time.Time // not used before the one and after the other
	status       int
	kind         string
	body         []byte
	whole        bool // nothing was hidden from its caller, from the begin to the end
}

// Middleware gives a caller the answer that another caller got, if the question allows it. It
// stands behind the gate, so each caller has the right to ask.
func (a *Answers) Middleware(ctx huma.Context, next func(huma.Context)) {
	since, ok := web.Since(ctx.Context())
	at := ctx.URL()
	if !ok || ctx.Method() != http.MethodGet || !a.paths[ctx.Operation().Path] ||
		at.Query().Has(personal) || !web.ViewOf(ctx.Context()).All() {
		next(ctx)
		return
	}
	key := at.RequestURI()
	got := a.find(key, since)
	for mine := false; got == nil; {
		v, _, _ := a.flight.Do(key, func() (any, error) {
			mine = true
			return a.make(ctx, key, next), nil
		})
		// An answer that somebody else has begun may be too old, or have ended with its caller.
		if got = v.(*answer); !mine && (got.begun.Before(since) || !got.good()) {
			got = a.find(key, since)
		}
	}
	ctx.SetHeader("Content-Type", got.kind)
	ctx.SetStatus(got.status)
	// A caller that does not read its answer has gone.
	_, _ = ctx.BodyWriter().Write(got.body)
}

// good reports whether the answer is one for others, too.
func (n *answer) good() bool { return n.status == http.StatusOK && n.whole }

// make has a question answered, and keeps the answer.
func (a *Answers) make(ctx huma.Context, key string, next func(huma.Context)) *answer {
	c := &capture{request: ctx, head: http.Header{}}
	n := &answer{begun: a.now()}
	next(c)
	n.status, n.kind, n.body = c.status, c.head.Get("Content-Type"), c.body.Bytes()
	n.whole = web.ViewOf(ctx.Context()).All()
	end := a.now()
	n.until = end.Add(max(least, share*end.Sub(n.begun)))
	if n.good() {
		a.keep(key, n, end)
	}
	return n
}

// find returns an answer that was begun since an instant; nil: there is none.
func (a *Answers) find(key string, since time.Time) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.kept[key]
	if n == nil || n.begun.Before(since) || !a.now().Before(n.until) {
		return nil
	}
	return n
}

// keep keeps an answer in the place of those that are over.
func (a *Answers) keep(key string, n *answer, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, old := range a.kept {
		if at == key || !now.Before(old.until) {
			a.size -= len(old.body)
			delete(a.kept, at)
		}
	}
	if a.size+len(n.body) > most {
		return // the next caller asks again
	}
	a.size += len(n.body)
	a.kept[key] = n
}

// A request is a context of huma under a name that leaves its method Context to it.
type request huma.Context

// A capture keeps what a route answers.
type capture struct {
	request
	status int
	head   http.Header
	body   bytes.Buffer
}

// Unwrap returns the context of the request.
func (c *capture) Unwrap() huma.Context { return c.request }

// SetStatus keeps the status of the answer.
func (c *capture) SetStatus(code int) { c.status = code }

// Status returns the status of the answer.
func (c *capture) Status() int { return c.status }

// SetHeader keeps a field of the answer's head.
func (c *capture) SetHeader(name, value string) { c.head.Set(name, value) }

// AppendHeader keeps one more field of the answer's head.
func (c *capture) AppendHeader(name, value string) { c.head.Add(name, value) }

// BodyWriter returns the writer of the answer's body.
func (c *capture) BodyWriter() io.Writer { return &c.body }
