// Package fault has the values for all that can be wrong with a request: single mistakes with
// their place, and the answers that refuse a request. The HTTP side makes problem details of them.
//
// Floor 2: may import fleet and scripts, whose errors hold several mistakes.
package fault

import (
	"errors"
	"fmt"
	"strings"

	"muster/fleet"
	"muster/internal/wording"
	"muster/scripts"
)

// A Mistake is one thing that is wrong with a request, and where.
type Mistake struct {
	Location string // such as body.on
	Message  string
	Value    any // for programs; nil: there is none
}

func (m *Mistake) Error() string {
	if m.Location == "" && m.Value == nil {
		return m.Message
	}
	return fmt.Sprintf("%s (%s: %v)", m.Message, m.Location, m.Value)
}

// At returns a mistake at a location.
func At(location, format string, args ...any) error {
	return &Mistake{Location: location, Message: fmt.Sprintf(format, args...)}
}

// Each takes an error apart that holds several, and returns them as mistakes at a location.
func Each(location string, err error) []error {
	if err == nil {
		return nil
	}
	var list []error
	each := func(err error) { list = append(list, Each(location, err)...) }
	switch e := err.(type) {
	case fleet.Mistakes:
		for _, one := range e {
			each(one)
		}
	case scripts.Mistakes:
		for _, one := range e {
			each(one)
		}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			each(one)
		}
	default:
		m := &Mistake{Location: location, Message: err.Error()}
		if lost := (*fleet.LostError)(nil); errors.As(err, &lost) {
			m.Value = lost.Lost
		}
		list = append(list, m)
	}
	return list
}

// A Kind says why a request has not been carried out.
type Kind int

// The kinds of an Error.
const (
	Refused  Kind = iota // it has mistakes
	Conflict             // it contradicts what is there
	Away                 // Redis cannot be used: the same request may succeed later
)

// An Error says that a request has not been carried out, and why.
type Error struct {
	Kind     Kind
	Words    string
	Mistakes []error
}

func (e *Error) Error() string { return e.Words }

// Refuse returns the error of a request that has mistakes.
func Refuse(mistakes []error) error {
	return &Error{Refused, wording.Count(len(mistakes), "mistake"), mistakes}
}

// Contradict returns the error of a request that contradicts what is there.
func Contradict(words string) error { return &Error{Kind: Conflict, Words: words} }

// Later returns the error of a request that came while Redis could not be used.
func Later(words string) error { return &Error{Kind: Away, Words: words} }

// Words returns mistakes in one line.
func Words(wrong []error) string {
	var list []string
	for _, err := range wrong {
		var d *Mistake
		if errors.As(err, &d) {
			list = append(list, strings.TrimPrefix(d.Location, "body.")+": "+d.Message)
			continue
		}
		list = append(list, err.Error())
	}
	return strings.ReplaceAll(strings.Join(list, "; "), "\n", "; ")
}
