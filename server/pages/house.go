package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"muster/api"
	"muster/server/web"
)

// A house asks the API in the name of the person who looks at a page.
type house struct {
	ctx  context.Context
	api  http.Handler
	who  web.Caller
	from string // the address of the browser
}

// house returns the house as the sender of a request sees it.
func (p *Pages) house(w http.ResponseWriter, r *http.Request) house {
	h := house{ctx: r.Context(), api: p.needs.API, from: r.RemoteAddr}
	if x, ok := w.(*web.Exchange); ok {
		h.who = x.Who
	}
	return h
}

// A problem is an answer of the API that refuses something.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Message  string `json:"message"`
		Location string `json:"location"`
	} `json:"errors"`
}

// Error returns the words of the API.
func (p *problem) Error() string {
	text := p.Detail
	for _, e := range p.Errors {
		text += "\n" + e.Location + ": " + e.Message
	}
	return text
}

// Heading returns a few words for the title of a page.
func (p *problem) Heading() string {
	switch p.Status {
	case http.StatusForbidden:
		return "You may not see or do this"
	case http.StatusNotFound:
		return "There is no such thing"
	case http.StatusConflict:
		return "Not done: something has changed"
	case http.StatusUnprocessableEntity:
		return "Not done: something is wrong with it"
	case http.StatusServiceUnavailable:
		return "Not known at this moment"
	}
	return "This went wrong"
}

// problemOf returns the problem that an error is.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	return &problem{Status: http.StatusInternalServerError, Detail: err.Error()}
}

// refusal returns a problem of the pages themselves.
func refusal(status int, format string, args ...any) error {
	return &problem{Status: status, Detail: fmt.Sprintf(format, args...)}
}

// get asks a question and reads the answer into out.
func (h house) get(path string, q url.Values, out any) error {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return h.call(http.MethodGet, path, nil, out)
}

// call makes a request of the API with a body in JSON, and reads the answer into out, unless that
// is nil.
func (h house) call(method, path string, body, out any) error {
	a, err := h.raw(h.ctx, method, path, body)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(a.body.Bytes(), out)
}

// may returns why the person may not make a request; nil: it is allowed. Nothing is done.
func (h house) may(method, path string) error {
	_, err := h.raw(web.WithProbe(h.ctx), method, path, nil)
	return err
}

// raw makes a request and returns the whole answer. An answer that refuses is an error.
func (h house) raw(ctx context.Context, method, path string, body any) (*answer, error) {
	var in bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&in).Encode(body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, path, &in)
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = h.from
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	a := &answer{header: http.Header{}}
	h.api.ServeHTTP(&web.Exchange{ResponseWriter: a, Who: h.who}, r)
	if a.status >= http.StatusBadRequest {
		p := &problem{}
		if json.Unmarshal(a.body.Bytes(), p) != nil {
			p.Detail = a.body.String()
		}
		p.Status = a.status
		return nil, p
	}
	return a, nil
}

// An answer keeps what the API answers.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is the head of the answer.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader keeps the status.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write keeps a part of the answer.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// SetReadDeadline does nothing: all of the request is there.
func (a *answer) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing: an answer in memory is never late.
func (a *answer) SetWriteDeadline(time.Time) error { return nil }

// asked is the answer to a question that a page can do without: some of its facts may be hidden
// from the person, or not be known.
type asked[T any] struct {
	is  T
	why string // it is not known, or hidden; empty: it is known
}

// try asks a question whose answer may be missing.
func try[T any](h house, path string, q url.Values) asked[T] {
	var a asked[T]
	if err := h.get(path, q, &a.is); err != nil {
		a.why = err.Error()
	}
	return a
}

// verbs returns what the person may do at all.
func (h house) verbs() []string {
	var who api.Whoami
	if h.get("/v1/whoami", nil, &who) != nil {
		return nil
	}
	return who.Verbs
}
