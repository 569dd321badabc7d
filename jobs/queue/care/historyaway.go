package care

import (
	"muster/jobs/queue"
)

// History keeps account of what history has to read and to be asked, for each zone.
type History struct{ c *queue.Conn }

// NewHistory returns the account behind a connection.
func NewHistory(c *queue.Conn) *History { return &History{c} }

// The events at the beginning and the end of a time in which events are not stored.
const (
	EventHistoryAway = "history-away"
	EventHistoryBack = "history-back"
)

// A Backlog is the size of the event stream of a zone.
type Backlog struct {
	Zone   string
	Added  int64 // number of entries ever added; -1: this Redis does not count them
	Length int64
	Most   int64 // about so many entries it holds: further ones drive out the first
}
