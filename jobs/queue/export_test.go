package queue

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/model"
	"muster/jobs/queue/clock"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// BeforeScript calls f before each call of a script whose first argument is op. If f returns an
// error, the call returns it and is not made.
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

// NoFunctions makes a handle use scripts only, as with a Redis that has no functions.
func (q *Conn) NoFunctions() { q.functions.never() }

// EpochArgs returns the arguments with which this handle would call epoch now, at a server with this
// run id.
func (q *Conn) EpochArgs(zone, run string) []any {
	args, _ := q.epochArgs(epochCall{zone: zone, run: run})
	return args
}

// SetJumpMin makes smaller jumps of TIME count.
func (q *Conn) SetJumpMin(d time.Duration) { q.jumpMin = d }

// AddHook makes h see all commands to the one server.
func (q *Conn) AddHook(h redis.Hook) { q.rdb.(*redis.Client).AddHook(h) }

// Blur widens the bounds of the clock as if its only answer had taken so long.
func (q *Conn) Blur(zone string, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.zones[zone].clock.Lo -= d.Microseconds()
}

// TokensInHand returns the tokens of the attempts that a hello would name as in hand.
func (q *Conn) TokensInHand(zone string) map[jobs.ID]jobs.Token {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := map[jobs.ID]jobs.Token{}
	for id, h := range q.zones[zone].held {
		all[id] = h.token
	}
	return all
}

// ForgetClock forgets the clock of a zone, and reads it again.
func (q *Conn) ForgetClock(ctx context.Context, zone string) error {
	q.mu.Lock()
	q.zones[zone].clock = clock.Clock{}
	q.mu.Unlock()
	return q.reread(ctx, zone)
}

// ScriptTexts returns the scripts by their hashes.
func ScriptTexts() map[string]string {
	texts := map[string]string{}
	for _, s := range []*Script{Scripts.Put, Scripts.Step, Scripts.Checkpoint, Scripts.Lose,
		Scripts.End, Scripts.Move, Scripts.epoch, Scripts.Control, Scripts.Fsck, Scripts.Reorder,
		Scripts.Speak, Scripts.Blob, ScriptRoll, ScriptAppoint, ScriptRecall, ScriptAsk, Scripts.Lead,
		Scripts.Schedule, Scripts.Tick} {
		texts[s.made().Hash()] = s.made().text
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

// Updating reports whether the test was called to write the files that it compares with.
func Updating() bool { return *update }

// ReadJob reads the record of a job in the form of the model.
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

// ForgetTask makes Redis forget a task in a zone or, with the zone "", in the hub.
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

// OldEnough refuses a version of Redis that is too old.
func OldEnough(version string) error { return codec.OldEnough(version) }
