// Package trial reads what a host says of a change on trial: one that the host takes back by itself
// unless it is confirmed in time.
//
// It is pure. Floor 0: may import internal/lazyregexp and internal/wording.
package trial

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/internal/lazyregexp"
)

// State is the state of a change as the host last reported it.
type State struct {
	Word Word
	Code int           // of guard, prove, keep or the rollback, whichever ran last; -1: unknown
	Left time.Duration // armed: time until the host reverts it
	More string        // which change is pending, or why this one was reverted
}

// Word is the word of a host for the state of a change.
type Word string

// The states of a change.
const (
	None       Word = "none"       // nothing was done; Code is that of the guard
	Busy       Word = "busy"       // another change is pending
	Armed      Word = "armed"      // may have been made, and is not confirmed
	Proof      Word = "proof"      // likewise, and Code is that of the proof
	Confirmed  Word = "confirmed"  // permanent; Code is that of keep
	RolledBack Word = "rolledback" // Code is that of the rollback
)

// String describes the state for people.
func (c State) String() string {
	switch c.Word {
	case None:
		if c.Code <= 0 { // not the same as 0: the host may have forgotten it
			return "the host knows of none"
		}
		return "nothing was done"
	case Busy:
		return "another change is pending, of job " + plainOr(c.More)
	case Armed:
		return fmt.Sprintf("made, and taken back in %s unless it is confirmed", c.Left)
	case Proof:
		return fmt.Sprintf("proof, exit %d, with %s left", c.Code, c.Left)
	case Confirmed:
		return "confirmed"
	case RolledBack:
		return strings.TrimSpace("taken back, exit " + strconv.Itoa(c.Code) + " " + plainOr(c.More))
	}
	return string(c.Word)
}

// plainOr returns a plain word of a host, with its number if it has one, unchanged. It quotes
// anything else, because the result becomes part of our own messages.
func plainOr(said string) string {
	if said == "" || reasonWord().MatchString(said) {
		return said
	}
	return strconv.Quote(said)
}

var reasonWord = lazyregexp.New(`^[A-Za-z0-9_.:-]{1,80}( [0-9]{1,3})?$`)

// Mark begins the last line of a host's output, which reports the state of a change.
// The text before it may lack a newline at its end.
const Mark = "muster-confirm: "

var stateLine = lazyregexp.New(`^([a-z]+)((?: \S+)*) *$`)

// Read parses the last line of the host; it returns false if the line reports no state.
func Read(line string) (State, bool) {
	at := strings.LastIndex(line, Mark)
	if at < 0 {
		return State{}, false
	}
	m := stateLine().FindStringSubmatch(strings.TrimRight(line[at+len(Mark):], "\r\n"))
	if m == nil {
		return State{}, false
	}
	words := append(strings.Fields(m[2]), "", "", "")
	c := State{Word: Word(m[1]), Code: -1}
	number := func(s string) int {
		if n, err := strconv.Atoi(s); err == nil {
			return n
		}
		return -1
	}
	switch c.Word {
	case None:
		c.Code = number(words[1])
	case Busy:
		c.Left, c.More = time.Duration(number(words[0]))*time.Second, words[1]
	case Armed:
		c.Left = time.Duration(number(words[0])) * time.Second
	case Proof:
		c.Code, c.Left = number(words[0]), time.Duration(number(words[1]))*time.Second
	case Confirmed:
		c.Code = number(words[0])
	case RolledBack:
		c.Code, c.More = number(words[0]), strings.TrimSpace(strings.Join(words[1:], " "))
	default:
		return State{}, false
	}
	return c, true
}
