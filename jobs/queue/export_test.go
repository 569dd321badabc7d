package queue

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/model"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// BeforeScript lets a test come in before each call of a script whose first
// argument is op; an error of f is that of the call, which is then not made.
func (q *Conn) BeforeScript(op string, f func(n int) error) {
	// A script goes to the client of its node.
	c, _, err := q.At(context.Background(), "default")
	if err != nil {
		panic(err)
	}
	c.AddHook(&beforeScript{op: op, f: f})
}

type beforeScript struct {
	op string
	f  func(n int) error
	n  int
}

func (h *beforeScript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *beforeScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *beforeScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		// evalsha, hash, number of keys, key, first argument; none of them is a function
		if args := cmd.Args(); len(args) > 4 && args[4] == h.op && strings.EqualFold(cmd.Name(), "evalsha") {
			h.n++
			if err := h.f(h.n); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmd)
	}
}

// NoFunctions has a handle use scripts only, as with a Redis that has no functions.
func (q *Conn) NoFunctions() { q.functions.never() }

// SetJumpMin makes smaller jumps of TIME count.
func (q *Conn) SetJumpMin(d time.Duration) { q.jumpMin = d }

// AddHook has h see all that goes to the one server.
func (q *Conn) AddHook(h redis.Hook) { q.rdb.(*redis.Client).AddHook(h) }

// Blur makes what is known of the clock as bad as after an answer that took so
// long, and was the only one.
func (q *Conn) Blur(zone string, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.zones[zone].clock.lo -= d.Microseconds()
}

// ForgetClock makes the clock of a zone unknown, and reads it again.
func (q *Conn) ForgetClock(ctx context.Context, zone string) error {
	q.mu.Lock()
	q.zones[zone].clock = clock{}
	q.mu.Unlock()
	return q.reread(ctx, zone)
}

// ScriptTexts are the scripts by their hashes.
func ScriptTexts() map[string]string {
	texts := map[string]string{}
	for _, s := range []*Script{Scripts.Put, Scripts.Step, Scripts.Checkpoint, Scripts.Lose,
		Scripts.End, Scripts.Move, Scripts.epoch, Scripts.Control, Scripts.Fsck, Scripts.Order,
		Scripts.Speak, Scripts.Blob, ScriptRoll, ScriptAppoint, ScriptRecall, ScriptAsk, Scripts.Lead,
		Scripts.Schedule, Scripts.Tick} {
		texts[s.Hash()] = s.text
	}
	return texts
}

// Dial opens and closes a connection as a handle does.
func Dial(ctx context.Context, c Config, addr string) error {
	dial, err := c.dialer()
	if err != nil {
		return err
	}
	conn, err := dial(ctx, "tcp", addr)
	if err == nil {
		err = conn.Close()
	}
	return err
}

// Clock is what is known of a server's clock; see clock.go.
type Clock struct{ clock }

// Look is the clock as one call shows it.
func Look(now jobs.Micros, sent, came time.Duration) Clock { return Clock{look(now, sent, came)} }

// With is what is known after another look.
func (c Clock) With(next Clock) Clock { return Clock{c.with(next.clock)} }

// Jump is by how much the clock has jumped, at least.
func (c Clock) Jump(next Clock) time.Duration { return c.jump(next.clock) }

// Bounds are what is known.
func (c Clock) Bounds() (lo, hi int64) { return c.lo, c.hi }

// Updating tells whether the test was called to write what it compares with.
func Updating() bool { return *update }

// ReadJob reads the record of a job as the model has it.
func ReadJob(text string) (model.Job, error) {
	r, err := codec.ReadRecord(text)
	return model.Job{State: r.State, Token: r.Token,
		Counts: model.Counts{Attempt: r.Attempt, Tries: r.Tries, Probes: r.Probes, Crashes: r.Crashes},
		Step:   r.Step, Saved: r.Saved, Due: r.Due, Node: r.Node, Later: r.Later,
		Started: r.Started, Lost: r.Lost, Was: r.Was, Cancel: r.Cancel, Spent: r.Spent, Why: r.Why,
		End: model.End{At: r.End.At, Outcome: r.End.Outcome, Class: r.End.Class, Exit: r.End.Exit,
			Error: r.End.Err, Note: r.End.Note, Spent: r.End.Spent}}, err
}

// AgeClaims makes the claims of retries of a task older.
func (q *Conn) AgeClaims(ctx context.Context, of jobs.TaskID, by time.Duration) error {
	h, err := q.rdb.HGetAll(ctx, keys.Hub("retried:", string(of))).Result()
	if err != nil {
		return err
	}
	for field, text := range h {
		if !strings.HasPrefix(field, "~") {
			continue
		}
		c := map[string]any{}
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return err
		}
		at, _ := c["at"].(float64)
		c["at"] = jobs.Micros(at).Add(-by)
		older, err := json.Marshal(c)
		if err == nil {
			err = q.rdb.HSet(ctx, keys.Hub("retried:", string(of)), field, older).Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ForgetTask has Redis forget a task: what is in a zone, or, of the zone "", in the hub.
func (q *Conn) ForgetTask(ctx context.Context, zone string, id jobs.TaskID) error {
	key := keys.Hub("task:", string(id))
	if zone != "" {
		key = keys.Zone(zone, "task:", string(id))
		if err := q.rdb.Del(ctx, keys.Zone(zone, "held:", string(id))).Err(); err != nil {
			return err
		}
	}
	return q.rdb.Del(ctx, key).Err()
}

// OldEnough refuses a version of Redis.
func OldEnough(version string) error { return oldEnough(version) }
