package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// ErrFewer is wrapped when fewer replicas than Config.Durable have confirmed what
// was submitted: a failover now may forget it.
var ErrFewer = errors.New("not as durable as asked for")

// fewerPause is when a take that was given back is tried again.
const fewerPause = 2 * time.Second

// markText writes one number. WAIT waits for what its own connection wrote last, so
// a repeated call that writes nothing would seem to be everywhere at once. It
// begins with a write that frees, because then the other is let at maxmemory.
const markText = `redis.call('ZREM', string.sub(KEYS[1], 1, -5) .. 'queue', '')
if redis.call('HEXISTS', KEYS[1], 'run') == 1 then redis.call('HINCRBY', KEYS[1], 'acks', 1) end
return 1`

// mustLast tells whether replicas must have what a script does.
func (q *Queue) mustLast(s *script) bool {
	return q.cfg.Durable > 0 && (s == scripts.put || s == scripts.move || s == scripts.step)
}

// lasting makes calls of a script on one connection, and waits there until the
// replicas have confirmed them, for a quarter of the time that a call may take. It
// returns how many have.
func (q *Queue) lasting(ctx context.Context, c *redis.Client, keys []string,
	add func(redis.Pipeliner)) (cmds []redis.Cmder, acked int, err error) {
	cmds, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		add(p)
		p.Eval(ctx, markText, keys)
		p.Do(ctx, "WAIT", q.cfg.Durable, (q.cfg.Timeout / 4).Milliseconds())
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	last := len(cmds) - 1
	n, err := cmds[last].(*redis.Cmd).Int()
	return cmds[:last-1], n, err
}

// runLasting calls a script once, and tells how many replicas have what it did.
func (q *Queue) runLasting(ctx context.Context, c *redis.Client, s *script, name string,
	args []any) (v []any, acked int, err error) {
	keys := []string{zoneKey(name, "zone", "")}
	function := q.asFunction(s)
	once := func(p redis.Pipeliner) {
		if function {
			p.FCall(ctx, s.function, keys, args...)
		} else {
			s.EvalSha(ctx, p, keys, args...)
		}
	}
	cmds, acked, err := q.lasting(ctx, c, keys, once)
	if function && (isUnknownFunction(err) || isNoFunctions(err)) {
		function = q.tryFunction(ctx, c, s, err)
		cmds, acked, err = q.lasting(ctx, c, keys, once)
	}
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		if err := s.Load(ctx, c).Err(); err != nil {
			return nil, 0, err
		}
		cmds, acked, err = q.lasting(ctx, c, keys, once)
	}
	if err != nil {
		return nil, 0, err
	}
	v, err = cmds[0].(*redis.Cmd).Slice()
	return v, acked, err
}

// fewer says in words that too few replicas have confirmed; empty: enough have.
func (q *Queue) fewer(acked int) string {
	if acked >= q.cfg.Durable {
		return ""
	}
	return fmt.Sprintf("only %d of %d replicas (redis.durable) have confirmed", acked, q.cfg.Durable)
}

// putBack gives jobs back of which too few replicas know that they were taken:
// after a failover somebody else would get them too. Nothing was started. If this
// fails, the caller repeats its call, gets the same jobs and asks the replicas anew.
func (q *Queue) putBack(ctx context.Context, name string, s jobs.Step, reply jobs.Reply,
	why string) (jobs.Reply, error) {
	back := jobs.Step{Node: s.Node, Slot: s.Slot, Request: s.Request + "-back"}
	for _, g := range attempts(reply.Jobs) {
		back.Results = append(back.Results, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
	}
	if _, _, err := q.step(ctx, name, back); err != nil {
		return reply, fmt.Errorf("%s the take, and giving back failed: %w", why, err)
	}
	return jobs.Reply{Status: jobs.StatusNext, Now: reply.Now, Next: reply.Now.Add(fewerPause),
		Late: reply.Late, Why: why + " the take: nothing was started"}, nil
}
