package main

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
	"muster/jobs"
)

// awayError means that no muster server answers, or none that can be understood.
type awayError struct {
	place string
	err   error
	heard bool // the request may have been carried out
}

func (e *awayError) Error() string {
	if none := (*nowhereError)(nil); errors.As(e.err, &none) {
		looked := remote.Harmless(none.Error())
		return fmt.Sprintf("no muster server was found on this machine:\n%s\nstart one with "+
			"`muster up`, or say where it is with --server or MUSTER_URL", looked)
	}
	if errors.Is(e.err, fs.ErrPermission) {
		return fmt.Sprintf("%s: %s\nonly the user and the group of this socket may use it, and whoever "+
			"may enter its folder: ask for that group", e.place, cell(e.err.Error()))
	}
	return fmt.Sprintf("no muster server at %s: %s\nstart one with `muster up`, or say where it is "+
		"with --server or MUSTER_URL", e.place, cell(e.err.Error()))
}

func (e *awayError) Unwrap() error { return e.err }

// nonsense is about an answer that no server of muster gives, so none has heard
// the request.
func (c *client) nonsense(what string) error {
	return &awayError{place: c.place, err: errors.New("something else answers there: " + what)}
}

// unsureError means that nobody knows whether a task was accepted.
type unsureError struct {
	task jobs.TaskID
	err  error
}

func (e *unsureError) Error() string {
	return fmt.Sprintf("%s\n%s", e.err, unsure(e.task))
}

func (e *unsureError) Unwrap() error { return e.err }

func unsure(id jobs.TaskID) string {
	return fmt.Sprintf("it is not known whether task %[1]s was accepted: `muster task %[1]s` tells; "+
		"the same command with --id %[1]s completes it and never runs it twice", id)
}

// refusal is an answer of a server that says no.
type refusal struct {
	status int
	words  string   // all that the server says in general
	wrong  []string // each mistake
	token  bool     // a token was sent
}

func (e *refusal) Error() string {
	lines := e.wrong
	if len(lines) == 0 {
		lines = []string{e.words}
	}
	if hint := e.hint(); hint != "" {
		lines = append(lines[:len(lines):len(lines)], hint)
	}
	return strings.Join(lines, "\n")
}

func (e *refusal) hint() string {
	denied := e.status == http.StatusUnauthorized || e.status == http.StatusForbidden
	switch {
	case !denied:
		return ""
	case e.token:
		return "the token in MUSTER_TOKEN is not accepted for this"
	case strings.Contains(e.words, "MUSTER_TOKEN"):
		return ""
	}
	return "set MUSTER_TOKEN to a token; `muster token create NAME` makes one, on the server's " +
		"machine over its unix socket"
}

// refusalMax bounds what is read of a refusal.
const refusalMax = 1 << 20 // bytes

// problem is RFC 9457.
type problem struct {
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Message  string          `json:"message"`
		Location string          `json:"location"`
		Value    json.RawMessage `json:"value"`
	} `json:"errors"`
}

// refused makes an error of an answer that is not 2xx.
func (c *client) refused(r *http.Response) error {
	if r.StatusCode/100 == 3 {
		return c.nonsense(fmt.Sprintf("it answers %s and points to %q", r.Status,
			r.Header.Get("Location")))
	}
	var p problem
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, refusalMax))
	if t := mediaType(r); t != "application/problem+json" || d.Decode(&p) != nil {
		// A proxy says 502 or 504 also when it lost a server that has heard.
		return &awayError{place: c.place, heard: r.StatusCode >= 500,
			err: fmt.Errorf("something else answers there: it says %s with %q", r.Status, t)}
	}
	e := &refusal{status: r.StatusCode, token: c.token != "", words: cell(p.Detail)}
	if e.words == "" {
		e.words = cell(p.Title)
	}
	if e.words == "" {
		e.words = "the server answers " + r.Status
	}
	for _, one := range p.Errors {
		where := place(one.Location)
		if p := r.Request.URL.Path; p == "/v1/schedules" || p == "/v1/windows" {
			where = strings.TrimPrefix(where, "--arg-file: ") // the words name the file
		}
		if strings.HasPrefix(r.Request.URL.Path, "/v1/hosts/") && one.Location == "body.on" {
			where = place("query.on") // these commands have no flag for it
		}
		var lost []fleet.Lost
		if json.Unmarshal(one.Value, &lost) == nil && len(lost) > 0 {
			told, all := c.files.place(lost)
			e.wrong = append(e.wrong, told...)
			if all {
				continue
			}
		}
		text := mistakeText(one.Message)
		if strings.HasPrefix(text, strings.TrimSuffix(where, ": ")+" ") {
			where = "" // the words name it themselves: selector "fw": …
		}
		e.wrong = append(e.wrong, where+text)
	}
	return e
}

// mistakeText may have several lines, as a YAML error has.
func mistakeText(text string) string {
	return strings.TrimSpace(remote.Harmless(text))
}

// passing tells whether the same request may do better later.
func passing(err error) bool {
	var away *awayError
	var no *refusal
	switch {
	case errors.As(err, &away):
		return true
	case errors.As(err, &no):
		return no.status >= 500 || no.status == http.StatusTooManyRequests
	}
	return false
}

// again does f until it works, its error does not pass or the patience is over.
// note hears of every error that is not the end.
func again[T any](ctx context.Context, p patience, f func() (T, error), note backoff.Notify) (
	T, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = p.first, p.most
	return backoff.Retry(ctx, func() (T, error) {
		v, err := f()
		if err != nil && !passing(err) {
			var permanent *backoff.PermanentError
			if !errors.As(err, &permanent) {
				err = backoff.Permanent(err)
			}
		}
		return v, err
	}, backoff.WithBackOff(b), backoff.WithMaxElapsedTime(p.whole), backoff.WithNotify(note))
}

// codeOf is the exit code of an error.
func codeOf(err error) int {
	var away *awayError
	var no *refusal
	switch {
	case errors.As(err, &away):
		return exitUnreachable
	case errors.As(err, &no) &&
		(no.status == http.StatusBadRequest || no.status == http.StatusUnprocessableEntity):
		return exitUsage
	}
	return exitNotAll
}
