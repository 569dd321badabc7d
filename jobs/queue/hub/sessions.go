package hub

import (
	"context"
	"fmt"
	"strings"

	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Sessions stores the records of sessions, and of the links and codes that begin one, as texts that
// servers make and check.
type Sessions struct{ c *queue.Conn }

// NewSessions returns the sessions behind a connection.
func NewSessions(c *queue.Conn) *Sessions { return &Sessions{c} }

// useMark ends the field of a session that has its last use.
const useMark = "/used"

// AddSession stores a new record. The error wraps queue.ErrTokenName if its id is taken.
func (q *Sessions) AddSession(ctx context.Context, id, record string) error {
	added, err := q.c.Redis().HSetNX(ctx, keys.Hub("sessions", ""), id, record).Result()
	if err == nil && !added {
		return fmt.Errorf("session %s: %w", id, queue.ErrTokenName)
	}
	return q.c.Say("session", err)
}

// SessionRecord returns a record, and what NoteSessionUse has stored with it; empty: nothing. The
// error wraps queue.ErrNotFound if there is no record.
func (q *Sessions) SessionRecord(ctx context.Context, id string) (record, used string, err error) {
	both, err := q.c.Redis().HMGet(ctx, keys.Hub("sessions", ""), id, id+useMark).Result()
	if err != nil {
		return "", "", q.c.Say("session", err)
	}
	record, found := both[0].(string)
	if !found {
		return "", "", fmt.Errorf("session: %w", queue.ErrNotFound)
	}
	used, _ = both[1].(string)
	return record, used, nil
}

// SessionRecords returns all records, and their uses, by id. All texts are as Redis has them.
func (q *Sessions) SessionRecords(ctx context.Context) (
	records, uses map[string]string, err error) {
	all, err := q.c.Redis().HGetAll(ctx, keys.Hub("sessions", "")).Result()
	records, uses = map[string]string{}, map[string]string{}
	for field, text := range all {
		if id, is := strings.CutSuffix(field, useMark); is {
			uses[id] = text
			continue
		}
		records[field] = text
	}
	return records, uses, q.c.Say("session", err)
}

// DropSession removes records. It reports whether this call has removed one: of several servers
// that remove the same record, one hears true.
func (q *Sessions) DropSession(ctx context.Context, ids ...string) (bool, error) {
	if len(ids) == 0 {
		return false, nil
	}
	var uses []string
	for _, id := range ids {
		uses = append(uses, id+useMark)
	}
	n, err := q.c.Redis().HDel(ctx, keys.Hub("sessions", ""), ids...).Result()
	if err == nil {
		err = q.c.Redis().HDel(ctx, keys.Hub("sessions", ""), uses...).Err()
	}
	return n > 0, q.c.Say("session", err)
}

// NoteSessionUse stores a text about the last use of a session.
func (q *Sessions) NoteSessionUse(ctx context.Context, id, text string) error {
	return q.c.Say("session",
		q.c.Redis().HSet(ctx, keys.Hub("sessions", ""), id+useMark, text).Err())
}
