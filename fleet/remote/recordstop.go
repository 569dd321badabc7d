package remote

import (
	"context"
	"errors"
	"time"
)

// haltRecorded stops a step for which the host keeps a record. done is false without a record,
// as for an upload; then the caller finds the command by its mark.
func (s *session) haltRecorded(ctx context.Context, op string, cmd Command) (done bool, err error) {
	if !s.await(s.notes.hello) {
		return true, s.unlessEnded(op, errors.New("the host did not say that it began"))
	}
	if _, fenced := s.notes.state(); !fenced || cmd.verb == verbPut {
		return false, nil
	}
	if !s.await(s.notes.began) {
		return true, s.unlessEnded(op, errors.New("the host did not say that it began"))
	}
	said, err := s.conn.askToStop(ctx, Command{
		Shell: ":", Bound: s.conn.cfg.Stop, Record: cmd.Record, verb: verbStop})
	if err == nil && (said.word == "gone" || said.word == "ended") {
		select { // its end is on the way
		case <-s.notes.over:
			return true, nil
		case <-s.ended:
		case <-ctx.Done():
		}
	}
	switch {
	case isClosed(s.notes.over) && said.spared(err):
		return true, nil
	case err != nil:
		return true, s.doubt(op, err)
	case said.word == "none" || said.word == "unsure":
		return true, s.doubt(op, errors.New("the host knows of a step that nobody watches"))
	}
	return true, s.judge(op, said)
}

// await waits for an expected note. It returns false if the note does not come.
func (s *session) await(said <-chan struct{}) bool {
	limit := time.NewTimer(markTime)
	defer limit.Stop()

	select {
	case <-said:
		return true
	case <-s.notes.over:
	case <-s.ended:
	case <-limit.C:
	}
	return isClosed(said)
}

// unlessEnded returns nil if the end is known, or else the doubt whether the command ended.
func (s *session) unlessEnded(op string, why error) error {
	if isClosed(s.notes.over) || s.hasEnded() {
		return nil
	}
	return s.doubt(op, why)
}
