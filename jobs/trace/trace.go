// Package trace names the traces of OpenTelemetry that tasks and jobs belong to. The names follow
// from the ids of tasks and jobs, so nobody has to store them, and every process knows them. Pure.
//
// Floor 2: may import jobs.
package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"muster/internal/wording"
	"muster/jobs"
)

// ID names a trace.
type ID [16]byte

// String returns the form in which all tools show the name.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// SpanID names a span of a trace.
type SpanID [8]byte

// String returns the form in which all tools show the name.
func (id SpanID) String() string { return hex.EncodeToString(id[:]) }

// A Context is a span of some trace, as another program names it.
type Context struct {
	Trace   ID
	Span    SpanID
	Sampled bool // that program keeps its trace
}

// The parts of a traceparent: https://www.w3.org/TR/trace-context.
const (
	plainLen  = 55 // bytes, of version 00
	parentMax = 200
	sampled   = 1 // in the flags
)

// Parse reads a traceparent.
func Parse(text string) (Context, error) {
	var c Context
	wrong := fmt.Errorf("traceparent %q: want 00-TRACE-SPAN-FLAGS with 32, 16 and 2 hexadecimal "+
		"digits in lower case, as in 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		wording.Clip(text))
	if len(text) < plainLen || len(text) > parentMax || text != strings.ToLower(text) {
		return c, wrong
	}
	version, rest := text[:2], text[plainLen:]
	var v, flags [1]byte
	// A later version may add more behind a dash.
	if rest != "" && (version == "00" || rest[0] != '-') || version == "ff" ||
		text[2] != '-' || text[35] != '-' || text[52] != '-' || !whole(v[:], version) ||
		!whole(c.Trace[:], text[3:35]) || !whole(c.Span[:], text[36:52]) ||
		!whole(flags[:], text[53:55]) || c.Trace == (ID{}) || c.Span == (SpanID{}) {
		return Context{}, wrong
	}
	c.Sampled = flags[0]&sampled != 0
	return c, nil
}

// whole reads hexadecimal digits, and reports whether they fill b.
func whole(b []byte, text string) bool {
	n, err := hex.Decode(b, []byte(text))
	return err == nil && n == len(b)
}

// String returns the traceparent.
func (c Context) String() string {
	flags := 0
	if c.Sampled {
		flags = sampled
	}
	return fmt.Sprintf("00-%s-%s-%02x", c.Trace, c.Span, flags)
}

// OfJob returns the trace of a job.
func OfJob(id jobs.ID) ID { return first("trace of job", string(id)) }

// Submit returns the span of the submit of a task. It is in the trace of the caller, if the
// traceparent of the submit names one, and else in a trace of its own.
func Submit(id jobs.TaskID, traceparent string) Context {
	c, err := Parse(traceparent)
	if err != nil { // none, or what somebody else has written to Redis
		c = Context{Trace: first("trace of task", string(id))}
	}
	c.Span = Span("submit", string(id))
	return c
}

// Span returns the name of a span by some words, which no other span has.
func Span(parts ...string) SpanID {
	h := sum(parts...)
	return SpanID(h[:8])
}

// IsPicked reports whether a task is in the sample of 1 in n tasks; with n = 0 none is. All
// processes agree about it.
func IsPicked(id jobs.TaskID, n int) bool {
	if n < 1 {
		return false
	}
	h := sum("sample", string(id))
	return binary.BigEndian.Uint64(h[:8])%uint64(n) == 0
}

func first(parts ...string) ID {
	h := sum(parts...)
	return ID(h[:16])
}

// sum hashes words. No word has a zero byte, so that other words have another sum.
func sum(words ...string) [sha256.Size]byte {
	return sha256.Sum256([]byte("muster\x00" + strings.Join(words, "\x00")))
}
