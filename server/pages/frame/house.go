package frame

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"muster/server/web"
)

// A House asks the API in the name of the person who looks at a page.
type House struct {
	Ctx   context.Context
	api   http.Handler
	who   web.Caller
	again func() (web.Caller, error) // identifies the person once more, while a request lasts
	from  string                     // the address of the browser

	// Light: an open page asks for what is quickly known and changes often, and for nothing else.
	Light bool
}

// House returns the house as the sender of a request sees it.
func (p *Frame) House(w http.ResponseWriter, r *http.Request) House {
	h := House{Ctx: r.Context(), api: p.needs.API, from: r.RemoteAddr}
	if x, ok := w.(*web.Exchange); ok {
		h.who, h.again = x.Who, x.Again
	}
	if to, live := r.Context().Value(liveKey{}).(*taken); live {
		h.Light = to.light
	}
	return h
}

// A Problem is an answer of the API that refuses something.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Message  string `json:"message"`
		Location string `json:"location"`
	} `json:"errors"`
}

// Error returns the words of the API.
func (p *Problem) Error() string {
	text := p.Detail
	for _, e := range p.Errors {
		text += "\n" + e.Location + ": " + e.Message
	}
	return text
}

// Heading returns a few words for the title of a page.
func (p *Problem) Heading() string {
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

// ProblemOf returns the problem that an error is.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return &Problem{Status: http.StatusInternalServerError, Detail: err.Error()}
}

// Refusal returns a problem of the pages themselves.
func Refusal(status int, format string, args ...any) error {
	return &Problem{Status: status, Detail: fmt.Sprintf(format, args...)}
}

// get asks a question and reads the answer into out.
func (h House) Get(path string, q url.Values, out any) error {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return h.Call(http.MethodGet, path, nil, out)
}

// call makes a request of the API with a body in JSON, and reads the answer into out, unless that
// is nil.
func (h House) Call(method, path string, body, out any) error {
	a, err := h.Raw(h.Ctx, method, path, body)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(a.Body.Bytes(), out)
}

// may returns why the person may not make a request; nil: it is allowed. Nothing is done.
func (h House) May(method, path string) error {
	_, err := h.Raw(web.WithProbe(h.Ctx), method, path, nil)
	return err
}

// raw makes a request and returns the whole answer. An answer that refuses is an error.
func (h House) Raw(ctx context.Context, method, path string, body any) (*Reply, error) {
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
	a := &Reply{Head: http.Header{}}
	h.api.ServeHTTP(&web.Exchange{ResponseWriter: a, Who: h.who, Again: h.again}, r)
	if a.status >= http.StatusBadRequest {
		p := &Problem{}
		if json.Unmarshal(a.Body.Bytes(), p) != nil {
			p.Detail = a.Body.String()
		}
		p.Status = a.status
		return nil, p
	}
	return a, nil
}

// A Reply keeps what the API answers.
type Reply struct {
	Head   http.Header
	status int
	Body   bytes.Buffer
}

// Header is the head of the answer.
func (a *Reply) Header() http.Header { return a.Head }

// WriteHeader keeps the status.
func (a *Reply) WriteHeader(status int) { a.status = status }

// Write keeps a part of the answer.
func (a *Reply) Write(b []byte) (int, error) { return a.Body.Write(b) }

// SetReadDeadline does nothing: all of the request is there.
func (a *Reply) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing: an answer in memory is never late.
func (a *Reply) SetWriteDeadline(time.Time) error { return nil }

// Asked is the answer to a question that a page can do without: some of its facts may be hidden
// from the person, or not be known.
type Asked[T any] struct {
	Is  T
	Why string // it is not known, or hidden; empty: it is known
}

// Try asks a question whose answer may be missing.
func Try[T any](h House, path string, q url.Values) Asked[T] {
	var a Asked[T]
	if err := h.Get(path, q, &a.Is); err != nil {
		a.Why = err.Error()
	}
	return a
}
