// Package spans makes spans of OpenTelemetry of tasks and jobs that have ended, out of the times
// that history has of them. Pure.
//
// Floor 3: may import api, jobs, jobs/trace, internal/wording.
package spans

import (
	"slices"
	"strings"
	"time"

	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/trace"
)

// A Kind says on which side of a message a span is.
type Kind int

// The kinds, with their numbers in OTLP.
const (
	Internal Kind = 1
	Producer Kind = 4
	Consumer Kind = 5
)

// A Status says whether what a span describes went well.
type Status int

// The statuses, with their numbers in OTLP.
const (
	Unset Status = 0
	OK    Status = 1
	Error Status = 2
)

// A Span is one stretch of time of a task or a job.
type Span struct {
	Trace  trace.ID
	ID     trace.SpanID
	Parent trace.SpanID // zero: it is the first of its trace

	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	Link       *trace.Context // the span that caused it, in another trace; nil: none
	Status     Status
	Message    string // beside the status Error
}

// An Attribute is a word or a number about a span: a string, an int64 or a float64.
type Attribute struct {
	Key   string
	Value any
}

// textMax bounds the words of a span. Names of hosts and runbooks are shorter; what a node or a
// writer to Redis has made up may be longer.
const textMax = 200 // bytes

// text returns words in the bounded form that all collectors take.
func text(s string) string {
	return wording.OneLine(strings.ToValidUTF8(s, "\uFFFD"), textMax)
}

// list gathers attributes.
type list []Attribute

func (l *list) text(key, value string) {
	if value != "" {
		*l = append(*l, Attribute{key, text(value)})
	}
}

func (l *list) number(key string, n int) { *l = append(*l, Attribute{key, int64(n)}) }

// badly are the outcomes that nobody has ordered, and that do not do what was ordered.
var badly = []jobs.Outcome{jobs.Failed, jobs.Unreachable, jobs.Timeout, jobs.RolledBack,
	jobs.Unknown, jobs.Expired}

// IsBad reports whether a job ended so badly that its trace is always sent. A job that a person or
// a rule has cancelled, superseded or skipped did not end badly. An outcome that only a later
// muster knows is bad.
func IsBad(o jobs.Outcome) bool { return slices.Contains(badly, o) || !o.Valid() }

// AnyBad reports whether a job of a task ended badly.
func AnyBad(c jobs.Counts) bool {
	for o, n := range c {
		if n > 0 && IsBad(o) {
			return true
		}
	}
	return false
}

// judge sets the status of a span by an outcome. OpenTelemetry has no word for what is not known,
// so unknown is an error whose error.type says that it is not known, rather than that it failed.
func (s *Span) judge(o jobs.Outcome) {
	switch {
	case o == jobs.Succeeded:
		s.Status = OK
	case IsBad(o):
		s.Status, s.Message = Error, text(string(o))
		if o == jobs.Unknown {
			s.Message = "it is not known what happened"
		}
		s.Attributes = append(s.Attributes, Attribute{"error.type", text(string(o))})
	}
}

// between puts an instant into a stretch of time: clocks differ, and a span must not end before it
// begins.
func between(at, from, to time.Time) time.Time {
	switch {
	case at.Before(from):
		return from
	case at.After(to):
		return to
	}
	return at
}
