package care

import (
	"muster/jobs/queue"
)

// History keeps account of what history has to hear of each zone.
type History struct{ c *queue.Conn }

// NewHistory returns the account behind a connection.
func NewHistory(c *queue.Conn) *History { return &History{c} }

// The events that tell of the beginning and the end of a time in which what happens is
// not stored.
const (
	EventHistoryAway = "history-away"
	EventHistoryBack = "history-back"
)

// A Backlog is what the event stream of a zone has.
type Backlog struct {
	Zone   string
	Added  int64 // entries that it ever got; -1: this Redis does not count them
	Length int64
	Most   int64 // about so many entries it holds: what comes then drives out the first
}
