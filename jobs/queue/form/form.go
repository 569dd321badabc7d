// Package form numbers the forms of the data that muster keeps in Redis, so that a muster which is
// older than the data changes nothing: it could lose what it does not know. Pure.
//
// Floor 1: may import no room.
package form

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// The numbers grow when an earlier muster would misread, or spoil, what this one writes.
const (
	// Mine is the form that this muster writes, and the latest one that it can read.
	Mine = 1

	// Least is the least Mine of a muster that may write beside this one: that of the release before
	// this one. Each zone and the hub keep the greatest Least of all that wrote there.
	Least = 1
)

// The fields that hold the form of a zone, in its key `zone`, and of the hub, in its key `form`.
const (
	Field   = "form"    // the least Mine of a muster that may write there
	FieldBy = "form_by" // the version of muster that said so
)

// An Error says that a newer muster has written to Redis, so that this one must not. Nothing has
// been changed.
type Error struct {
	Where string // "zone east", or "the hub"
	Least int    // the least Mine of a muster that may write there
	By    string // the version of muster that said so; empty: not known
}

func (e *Error) Error() string {
	by := e.By
	if by == "" {
		by = "a newer version"
	}
	return fmt.Sprintf("%s has been written by muster %s in form %d, and this muster knows form %d "+
		"at most, so it changes nothing: run muster %s here, too", e.Where, by, e.Least, Mine, by)
}

// A Place is one that has a form: the hub or a zone.
type Place struct {
	Where string
	Has   string // the least Mine of a muster that may write there; empty: none has
	By    string // the version of muster that said so
}

// A Server is one that has reported itself.
type Server struct {
	Name    string    `json:"-"`
	Version string    `json:"version"` // empty: its record cannot be read
	Seen    time.Time `json:"seen"`
}

// Check returns an *Error if the fields of a place, as Redis has them, say that a newer muster has
// written there.
func Check(where, field, by string) error {
	least, err := strconv.Atoi(field)
	if field == "" || err == nil && least <= Mine {
		return nil
	}
	return &Error{where, max(least, Mine+1), by}
}

// Behind reports whether this muster must write its Least, because the place has an earlier one.
func Behind(field, by string) bool {
	least, _ := strconv.Atoi(field)
	return least < Least || by == ""
}

// sign is the error of a script that refuses to write.
var sign = regexp.MustCompile(`muster-form (\S+) (\d+) ([^\s:]*)`)

// Of returns the Error that a script has answered with; nil: it is another error. The scripts call
// the hub a zone.
func Of(text, hub string) *Error {
	m := sign.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	least, err := strconv.Atoi(m[2])
	if err != nil {
		least = Mine + 1 // a number beyond all
	}
	where := "zone " + m[1]
	if m[1] == hub {
		where = "the hub"
	}
	return &Error{Where: where, Least: least, By: m[3]}
}

// Lua gives the scripts the numbers of the form.
var Lua = fmt.Sprintf("m.FORM, m.LEAST = %d, '%d'\n", Mine, Least)
