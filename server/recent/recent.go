// Package recent keeps answers of the API for a moment, so that many open pages that show the same
// cost as much as one. It shares answers among callers from whom nothing is hidden, each of whom
// was let in by the policy of now; whoever sees a part of the house is answered alone.
//
// Floor 5: may import server/web and below.
package recent

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/server/web"
)

const (
	// share: an answer is kept for twenty times as long as it took to make, between least and longest.
	share = 20
	// A caller that wants a newer answer names an instant.
	least = 5 * time.Second
	// A server that was slow once is not slow for ever.
	longest = time.Minute
	// most bounds all answers that are kept.
	most = 32 << 20 // bytes
	// each is added to the bytes of an answer for all around it.
	each = 512
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
	now   func() time.Time
	paths map[string]bool

	mu    sync.Mutex
	kept  map[string]*answer // by path and query
	size  int                // bytes of all
	under map[string]*making // that nobody has ended yet, by path and query
}

// A making is an answer that somebody makes just now.
type making struct {
	over   chan struct{} // closed at the end
	answer *answer       // then; nil: there was a panic
}

// New returns an Answers that keeps nothing yet.
func New(now func() time.Time) *Answers {
	return &Answers{now: now, paths: Paths(), kept: map[string]*answer{},
		under: map[string]*making{}}
}

// An answer was given to one caller.
type answer struct {
	begun, until time.Time // not used before the one and after the other
	status       int
	kind         string
	body         []byte
	// whole: nothing was hidden from its caller, from the begin to the end, who did not go either
	whole bool
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
	got := a.get(ctx, at.RequestURI(), since, next)
	if got == nil {
		next(ctx)
		return
	}
	ctx.SetHeader("Content-Type", got.kind)
	ctx.SetStatus(got.status)
	// A caller that does not read its answer has gone.
	_, _ = ctx.BodyWriter().Write(got.body)
}

// get returns an answer that was kept, or that this caller or another one makes now; nil: the
// caller has gone or sees less meanwhile, so it must ask for itself.
func (a *Answers) get(ctx huma.Context, key string, since time.Time,
	next func(huma.Context)) *answer {
	for {
		n, others, mine := a.begin(key, since)
		switch {
		case n != nil:
			return n
		case mine != nil:
			return a.make(ctx, key, mine, next)
		}
		select {
		case <-others.over:
		case <-ctx.Context().Done():
			return nil
		}
		if ctx.Context().Err() != nil || !web.ViewOf(ctx.Context()).All() {
			return nil
		}
		// The answer may be too old for this caller, or have ended with its own caller. A refusal is one
		// for all who have waited: if each tried after the other, the last would wait for long.
		if n := others.answer; n != nil && n.whole && !n.begun.Before(since) {
			return n
		}
	}
}

// begin returns an answer that is kept, or the making of one by others, or by this caller.
func (a *Answers) begin(key string, since time.Time) (n *answer, others, mine *making) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.kept[key]; n != nil && !n.begun.Before(since) && a.now().Before(n.until) {
		return n, nil, nil
	}
	if others = a.under[key]; others == nil {
		mine = &making{over: make(chan struct{})}
		a.under[key] = mine
	}
	return nil, others, mine
}

// make has a question answered, and keeps the answer.
func (a *Answers) make(ctx huma.Context, key string, m *making, next func(huma.Context)) *answer {
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.under, key)
		close(m.over)
	}()
	c := &capture{request: ctx, head: http.Header{}}
	n := &answer{begun: a.now()}
	next(c)
	n.status, n.kind, n.body = c.status, c.head.Get("Content-Type"), c.body.Bytes()
	// A route may leave out facts once its caller has gone.
	n.whole = web.ViewOf(ctx.Context()).All() && ctx.Context().Err() == nil
	end := a.now()
	n.until = end.Add(min(longest, max(least, share*end.Sub(n.begun))))
	if n.whole && n.status == http.StatusOK {
		a.keep(key, n, end)
	}
	m.answer = n
	return n
}

// keep keeps an answer in the place of those that are over and, if there is no room, of those that
// will be over next.
func (a *Answers) keep(key string, n *answer, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	drop := func(at string) {
		a.size -= sizeOf(at, a.kept[at])
		delete(a.kept, at)
	}
	for at, old := range a.kept {
		if at == key || !now.Before(old.until) {
			drop(at)
		}
	}
	size := sizeOf(key, n)
	if size > most {
		return
	}
	for a.size+size > most && len(a.kept) > 0 {
		next := slices.MinFunc(slices.Collect(maps.Keys(a.kept)), func(x, y string) int {
			return a.kept[x].until.Compare(a.kept[y].until)
		})
		if !a.kept[next].until.Before(n.until) {
			return
		}
		drop(next)
	}
	a.size += size
	a.kept[key] = n
}

// sizeOf returns the bytes that an answer takes.
func sizeOf(key string, n *answer) int { return each + len(key) + len(n.body) }

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
