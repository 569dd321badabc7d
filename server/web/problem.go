package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/fleet"
	"muster/history"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/fault"
)

// retryAfter is the time in seconds after which a client should try again if Redis is away.
const retryAfter = "5"

// statusGone is nginx' status for a client that went away. Only the metrics read it: they must
// not count it as a failure of the server.
const statusGone = 499

// Problem returns the answer for an error of the queue, of history or of a room of the server.
// An error that is an answer already stays as it is; nil stays nil.
func Problem(err error) error {
	var known huma.StatusError
	var wrong *fault.Error
	var without *queue.NoJobError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.As(err, &wrong):
		return answerOf(wrong)
	case errors.As(err, &without):
		return huma.Error404NotFound(fmt.Sprintf("%s: `muster jobs %s` lists its jobs", err,
			without.Task))
	case errors.Is(err, queue.ErrNotFound):
		return huma.Error404NotFound(err.Error() + ": a task is kept for 70 days, the end of a job " +
			"for a day; `muster tasks` lists the newest")
	case errors.Is(err, history.ErrNotFound), errors.Is(err, ErrNoHistory):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, history.ErrCursor):
		return Refusal(Mistakes("query.cursor", err))
	case errors.Is(err, jobs.ErrNoBlob):
		return huma.Error404NotFound(err.Error() + ": `muster blob ls` lists those that are")
	case errors.Is(err, jobs.ErrBadBlob):
		return huma.Error422UnprocessableEntity(err.Error())
	case errors.Is(err, queue.ErrBlobsFull), errors.Is(err, queue.ErrBlobUsed),
		errors.Is(err, queue.ErrBlobGoing):
		return huma.Error409Conflict(err.Error())
	case errors.Is(err, queue.ErrTokenName):
		return huma.Error409Conflict(err.Error() + ": choose another, or remove that one first")
	case errors.Is(err, queue.ErrStale):
		return huma.Error409Conflict(err.Error() + ": look at it, and give the order again")
	case errors.Is(err, context.Canceled):
		return huma.NewError(statusGone, "the client went away")
	}
	return Away(untimely(err))
}

// untimely returns the words of an error. The words of an expired context do not say which answer
// failed to come.
func untimely(err error) string {
	return strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), "no answer in time")
}

// Away returns the answer for the time in which Redis cannot be used.
func Away(words string) error {
	return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable(words),
		http.Header{"Retry-After": {retryAfter}})
}

// answerOf returns the answer for a fault.
func answerOf(e *fault.Error) error {
	switch e.Kind {
	case fault.Conflict:
		return huma.Error409Conflict(e.Words)
	case fault.Away:
		return Away(e.Words)
	}
	return Refusal(e.Mistakes)
}

// Mistake returns one mistake of a request, with its place.
func Mistake(location, format string, args ...any) error {
	return fault.At(location, format, args...)
}

// Mistakes returns each mistake that an error holds, with the place of all.
func Mistakes(location string, err error) []error { return fault.Each(location, err) }

// Refusal returns the answer to a request that has mistakes.
func Refusal(list []error) error {
	details := make([]error, len(list))
	for i, err := range list {
		details[i] = err
		if m := (*fault.Mistake)(nil); errors.As(err, &m) {
			details[i] = &huma.ErrorDetail{Location: m.Location, Message: m.Message, Value: m.Value}
		}
	}
	return huma.Error422UnprocessableEntity(wording.Count(len(list), "mistake"), details...)
}

// valueMax bounds the wrong value that an answer repeats.
const valueMax = 200 // bytes of JSON

// Shorten is a transformer of answers. The library repeats a wrong value as it
// came, be it a body of many megabytes.
func Shorten(_ huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	for _, e := range m.Errors {
		if e == nil || e.Value == nil {
			continue
		}
		if _, ours := e.Value.([]fleet.Lost); ours {
			continue
		}
		if text, err := json.Marshal(e.Value); err != nil || len(text) > valueMax {
			e.Value = nil
		}
	}
	return m, nil
}

// WriteProblem writes an error as the answer, for code before or beside the API.
func WriteProblem(w http.ResponseWriter, err error) {
	var headers huma.HeadersError
	if errors.As(err, &headers) {
		for name, values := range headers.GetHeaders() {
			w.Header()[name] = values
		}
	}
	var p huma.StatusError
	if !errors.As(err, &p) {
		p = huma.Error500InternalServerError(err.Error())
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.GetStatus())
	// A client that does not read its refusal has gone.
	_ = json.NewEncoder(w).Encode(p)
}

// ErrNoHistory says that the server keeps no history.
var ErrNoHistory = errors.New("this server keeps no history: history.url is none")

// NotThere is Problem for an error about a thing that is no task. The format has one place, for
// its name.
func NotThere(err error, format, name string) error {
	if errors.Is(err, queue.ErrNotFound) {
		return huma.Error404NotFound(fmt.Sprintf(format, Clip(name)))
	}
	return Problem(err)
}
