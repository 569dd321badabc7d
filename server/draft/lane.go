package draft

import (
	"errors"

	"muster/jobs/lane"
	"muster/server/fault"
)

// Waits says for what a task waits once it is put.
type Waits struct {
	Hold bool // for signatures of people
	Lane Lane // for its turn
}

// A Lane is the lane of a task. The zero value is none.
type Lane struct {
	Key, Mode string
	Customer  string // of its hosts; empty: it is the house's
}

// EndsOthers reports whether the task may end work of others in its lane.
func (l Lane) EndsOthers() bool {
	return l.Mode == string(lane.Latest) || l.Mode == string(lane.Pipeline)
}

// Check returns what is wrong with a lane.
func (l Lane) Check() (wrong []error) {
	if l == (Lane{}) {
		return nil
	}
	err := checkKey(l.Key)
	if l.Key == "" {
		err = errors.New("a lane needs a key: names with '/' between them, such as rules/acme")
	}
	wrong = fault.Each("query.lane", err)
	_, _, err = lane.ParseMode(l.Mode)
	return append(wrong, fault.Each("query.lane_mode", err)...)
}
