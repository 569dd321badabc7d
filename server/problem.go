package server

import (
	"context"
	"encoding/json"
	"errors"
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

// retryAfter is when to come again if Redis is away, in seconds.
const retryAfter = "5"

// statusGone is nginx' number for a client that went away; nobody reads it but
// the metrics, which must not count it as a failure of ours.
const statusGone = 499

// problem makes an answer of an error of the queue.
func problem(err error) error {
	var known huma.StatusError
	var wrong *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.As(err, &wrong):
		return answerOf(wrong)
	case errors.Is(err, queue.ErrNotFound):
		return huma.Error404NotFound(err.Error() + ": a task is kept for 70 days, the end of a job " +
			"for a day; `muster tasks` lists the newest")
	case errors.Is(err, history.ErrNotFound), errors.Is(err, errNoHistory):
		return huma.Error404NotFound(err.Error())
	case errors.Is(err, history.ErrCursor):
		return refusal(mistakes("query.cursor", err))
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
	return away(untimely(err))
}

// untimely is an error of Redis or of history in words: that of a context says nothing of what was
// waited for.
func untimely(err error) string {
	return strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), "no answer in time")
}

// away is the answer while Redis cannot be used.
func away(words string) error {
	return huma.ErrorWithHeaders(huma.Error503ServiceUnavailable(words),
		http.Header{"Retry-After": {retryAfter}})
}

// answerOf makes an answer of a fault.
func answerOf(e *fault.Error) error {
	switch e.Kind {
	case fault.Conflict:
		return huma.Error409Conflict(e.Words)
	case fault.Away:
		return away(e.Words)
	}
	return refusal(e.Mistakes)
}

// mistake is one thing that is wrong with a request, and where.
func mistake(location, format string, args ...any) error {
	return fault.At(location, format, args...)
}

// mistakes takes an error apart that holds several.
func mistakes(location string, err error) []error { return fault.Each(location, err) }

// refusal is the answer to a request that has mistakes.
func refusal(list []error) error {
	details := make([]error, len(list))
	for i, err := range list {
		details[i] = err
		if m := (*fault.Mistake)(nil); errors.As(err, &m) {
			details[i] = &huma.ErrorDetail{Location: m.Location, Message: m.Message, Value: m.Value}
		}
	}
	return huma.Error422UnprocessableEntity(wording.Count(len(list), "mistake"), details...)
}

// valueMax bounds what an answer repeats of a wrong value.
const valueMax = 200 // bytes of JSON

// shorten is a transformer of answers. The library repeats a wrong value as it
// came, be it a body of many megabytes.
func shorten(_ huma.Context, _ string, v any) (any, error) {
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

// writeProblem answers before or beside the API.
func writeProblem(w http.ResponseWriter, err error) {
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
