package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/cenkalti/backoff/v5"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/nearby"
	"muster/jobs"
)

// AwayError means that no muster server answers, or that the answer cannot be understood.
type AwayError struct {
	Place string
	Err   error
	Heard bool // a server may have carried the request out
}

func (e *AwayError) Error() string {
	if none := (*nearby.NowhereError)(nil); errors.As(e.Err, &none) {
		looked := remote.Harmless(none.Error())
		return fmt.Sprintf("no muster server was found on this machine:\n%s\nstart one with "+
			"`muster up`, or say where it is with --server or MUSTER_URL", looked)
	}
	if errors.Is(e.Err, fs.ErrPermission) {
		return fmt.Sprintf("%s: %s\nonly the user and the group of this socket may use it, and whoever "+
			"may enter its folder: ask for that group", e.Place, Cell(e.Err.Error()))
	}
	return fmt.Sprintf("no muster server at %s: %s\nstart one with `muster up`, or say where it is "+
		"with --server or MUSTER_URL", e.Place, Cell(e.Err.Error()))
}

func (e *AwayError) Unwrap() error { return e.Err }

// Nonsense returns an error for an answer that does not come from muster, so no server has received
// the request.
func (c *Client) Nonsense(what string) error {
	return &AwayError{Place: c.Place, Err: errors.New("something else answers there: " + what)}
}

// unsureError means that nobody knows whether a task was accepted.
type unsureError struct {
	task jobs.TaskID
	err  error
}

func (e *unsureError) Error() string {
	return fmt.Sprintf("%s\n%s", e.err, Unsure(e.task))
}

func (e *unsureError) Unwrap() error { return e.err }

// Unsure tells a user what to do if it is not known whether a task was accepted.
func Unsure(id jobs.TaskID) string {
	return fmt.Sprintf("it is not known whether task %[1]s was accepted: `muster task %[1]s` shows "+
		"it; the same command with --id %[1]s completes it and never runs it twice", id)
}

// Refusal is an answer with which a server refuses a request.
type Refusal struct {
	Status int
	words  string   // the general message
	wrong  []string // each mistake
	token  bool     // a token was sent
}

func (e *Refusal) Error() string {
	lines := e.wrong
	if len(lines) == 0 {
		lines = []string{e.words}
	}
	if hint := e.hint(); hint != "" {
		lines = append(lines[:len(lines):len(lines)], hint)
	}
	return strings.Join(lines, "\n")
}

func (e *Refusal) hint() string {
	switch {
	case e.Status != http.StatusUnauthorized: // a refused right says itself what is missing
		return ""
	case e.token:
		return "the token in MUSTER_TOKEN, or the session of `muster login`, is not accepted for this"
	case strings.Contains(e.words, "MUSTER_TOKEN"):
		return ""
	}
	return "set MUSTER_TOKEN to a token; `muster token create NAME` makes one, on the server's " +
		"machine over its unix socket"
}

// refusalMax bounds the bytes of a refusal that are read.
const refusalMax = 1 << 20 // bytes

// problem is the body of RFC 9457.
type problem struct {
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Message  string          `json:"message"`
		Location string          `json:"location"`
		Value    json.RawMessage `json:"value"`
	} `json:"errors"`
}

// Refused returns the error for an answer whose status is not 2xx.
func (c *Client) Refused(r *http.Response) error {
	if r.StatusCode/100 == 3 {
		return c.Nonsense(fmt.Sprintf("it answers %s and points to %q", r.Status,
			r.Header.Get("Location")))
	}
	var p problem
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, refusalMax))
	if t := MediaType(r); t != "application/problem+json" || d.Decode(&p) != nil {
		// A proxy also answers 502 or 504 when it lost a server that had the request.
		return &AwayError{Place: c.Place, Heard: r.StatusCode >= 500,
			Err: fmt.Errorf("something else answers there: it says %s with %q", r.Status, t)}
	}
	e := &Refusal{Status: r.StatusCode, token: c.token != "", words: Cell(p.Detail)}
	if e.words == "" {
		e.words = Cell(p.Title)
	}
	if e.words == "" {
		e.words = "the server answers " + r.Status
	}
	for _, one := range p.Errors {
		where := asked{r.Request.URL.Path}.place(one.Location)
		var lost []fleet.Lost
		if json.Unmarshal(one.Value, &lost) == nil && len(lost) > 0 {
			told, all := c.Files.place(lost)
			e.wrong = append(e.wrong, told...)
			if all {
				continue
			}
		}
		text := mistakeText(one.Message)
		if strings.HasPrefix(text, strings.TrimSuffix(where, ": ")+" ") {
			where = "" // the message names it: selector "fw": …
		}
		e.wrong = append(e.wrong, where+text)
	}
	return e
}

// mistakeText returns a mistake, which may have several lines, as errors about YAML do.
func mistakeText(text string) string {
	return strings.TrimSpace(remote.Harmless(text))
}

// Passing reports whether the same request may succeed later.
func Passing(err error) bool {
	var away *AwayError
	var no *Refusal
	switch {
	case errors.As(err, &away):
		return true
	case errors.As(err, &no):
		return no.Status >= 500 || no.Status == http.StatusTooManyRequests
	}
	return false
}

// Again calls f until it succeeds, its error is permanent or the patience is over. note receives
// every error except the last.
func Again[T any](ctx context.Context, p Patience, f func() (T, error), note backoff.Notify) (
	T, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = p.First, p.Most
	return backoff.Retry(ctx, func() (T, error) {
		v, err := f()
		if err != nil && !Passing(err) {
			var permanent *backoff.PermanentError
			if !errors.As(err, &permanent) {
				err = backoff.Permanent(err)
			}
		}
		return v, err
	}, backoff.WithBackOff(b), backoff.WithMaxElapsedTime(p.Whole), backoff.WithNotify(note))
}

// CodeOf returns the exit code of an error.
func CodeOf(err error) int {
	var away *AwayError
	var no *Refusal
	switch {
	case errors.As(err, &away):
		return ExitUnreachable
	case errors.As(err, &no) &&
		(no.Status == http.StatusBadRequest || no.Status == http.StatusUnprocessableEntity):
		return ExitUsage
	}
	return ExitNotAll
}
