package redistest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/keys"
)

// An Intruder writes to Redis past muster: as the user of a node where that user may, else as one who
// has the whole database.
type Intruder struct {
	t           testing.TB
	node, whole *redis.Client
}

// NewIntruder returns an intruder. When the test ends, the log of what the user of the node was
// refused is emptied, because that is no fault of muster.
func NewIntruder(t testing.TB, s *Server) *Intruder {
	t.Helper()
	i := &Intruder{t: t, node: Login(t, s, string(keys.RoleNode)), whole: client(s.Addr)}
	t.Cleanup(func() {
		must(t, i.whole.ACLLogReset(context.Background()).Err())
		i.whole.Close()
	})
	return i
}

// do carries out a command.
func (i *Intruder) do(args ...any) {
	i.t.Helper()
	err := i.node.Do(i.t.Context(), args...).Err()
	// A server without users has no user of a node either.
	if err != nil && (strings.HasPrefix(err.Error(), "NOPERM ") ||
		strings.HasPrefix(err.Error(), "WRONGPASS ")) {
		err = i.whole.Do(i.t.Context(), args...).Err()
	}
	if err != nil {
		i.t.Fatalf("%v: %v", args, err)
	}
}

// Get returns a field, which must be there.
func (i *Intruder) Get(key, field string) string {
	i.t.Helper()
	text, err := i.whole.HGet(i.t.Context(), key, field).Result()
	if err != nil {
		i.t.Fatalf("HGET %s %s: %v", key, field, err)
	}
	return text
}

// All returns all fields of a key.
func (i *Intruder) All(key string) map[string]string {
	i.t.Helper()
	all, err := i.whole.HGetAll(i.t.Context(), key).Result()
	must(i.t, err)
	return all
}

// Set writes a field.
func (i *Intruder) Set(key, field, text string) {
	i.t.Helper()
	i.do("HSET", key, field, text)
}

// Remove removes a field.
func (i *Intruder) Remove(key, field string) {
	i.t.Helper()
	i.do("HDEL", key, field)
}

// Replace changes a text in a field. The text must be there.
func (i *Intruder) Replace(key, field, old, with string) {
	i.t.Helper()
	text := i.Get(key, field)
	changed := strings.Replace(text, old, with, 1)
	if changed == text {
		i.t.Fatalf("%s %s does not have %q: %s", key, field, old, text)
	}
	i.Set(key, field, changed)
}

// Due makes a job due at once that waits for another attempt, or in the queue for its first one.
func (i *Intruder) Due(zone, job string) {
	i.t.Helper()
	i.do("ZREM", keys.Zone(zone, "queue", ""), job)
	i.do("ZADD", keys.Zone(zone, "again", ""), 7, job)
}

// Tell writes an event of a zone.
func (i *Intruder) Tell(zone, line string) {
	i.t.Helper()
	i.do("XADD", keys.Zone(zone, "events", ""), "*", "e", line)
}

// Requeue undoes Unqueue, and forgets what was written of the job.
func (i *Intruder) Requeue(zone, task, job, field string) {
	i.t.Helper()
	i.Remove(keys.Zone(zone, "task:", task), field)
	i.do("ZADD", keys.Zone(zone, "queue", ""), time.Now().UnixMicro(), job)
}

// Unqueue takes a job out of the queue, so that no worker gets it.
func (i *Intruder) Unqueue(zone, job string) {
	i.t.Helper()
	i.do("ZREM", keys.Zone(zone, "queue", ""), job)
}
