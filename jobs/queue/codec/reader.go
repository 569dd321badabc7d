package codec

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"muster/jobs"
)

// Absent is the answer of a script when the key of its zone is missing.
const Absent = "absent"

// Reader takes the parts of a script's answer in order and keeps the first error. An answer of
// another form comes from a bug or another version, so it is an error and never guessed at.
type Reader struct {
	Left  []any
	Err   error
	Acked int // replicas that have the script's writes, if the caller asked to wait for some
}

func (r *Reader) next() any {
	if len(r.Left) == 0 {
		r.fail(errors.New("answer is too short"))
		return nil
	}
	x := r.Left[0]
	r.Left = r.Left[1:]
	return x
}

func (r *Reader) fail(err error) {
	if r.Err == nil {
		r.Err = err
	}
}

// Text returns the next part as text, or "" if Redis answered nil.
func (r *Reader) Text() string {
	switch x := r.next().(type) {
	case string:
		return x
	case nil:
		return ""
	case int64:
		return strconv.FormatInt(x, 10)
	default:
		r.fail(fmt.Errorf("answer has %T where text was expected", x))
		return ""
	}
}

// Micros returns the next part as an instant.
func (r *Reader) Micros() jobs.Micros {
	m, err := jobs.ParseMicros(r.Text())
	if err != nil {
		r.fail(err)
	}
	return m
}

// Int returns the next part as a number.
func (r *Reader) Int() int { return int(r.Micros()) }

// Duration returns the next part, a number of microseconds.
func (r *Reader) Duration() time.Duration { return time.Duration(r.Micros()) * time.Microsecond }

// List returns a reader for the next part, which is a list.
func (r *Reader) List() Reader {
	v, ok := r.next().([]any)
	if !ok {
		r.fail(errors.New("answer lacks a list"))
	}
	return Reader{Left: v}
}

// Texts returns the next part, which is a list of texts.
func (r *Reader) Texts() []string {
	l := r.List()
	out := make([]string, 0, len(l.Left))
	for len(l.Left) > 0 && l.Err == nil {
		out = append(out, l.Text())
	}
	if l.Err != nil {
		r.fail(l.Err)
	}
	return out
}
