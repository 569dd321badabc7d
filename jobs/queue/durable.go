package queue

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

// ErrFewer is wrapped when fewer replicas than Config.Durable have confirmed a submit: a failover
// now may forget it.
var ErrFewer = errors.New("not as durable as asked for")

// markText writes one number. WAIT waits for the last write of its own connection, so a repeated
// call that writes nothing would seem to be on every replica at once. The text begins with a ZREM,
// because Redis lets a script write at maxmemory if its first write frees memory.
const markText = `redis.call('ZREM', string.sub(KEYS[1], 1, -5) .. 'queue', '')
if redis.call('HEXISTS', KEYS[1], 'run') == 1 then redis.call('HINCRBY', KEYS[1], 'acks', 1) end
return 1`

// lasting makes calls of a script on one connection, and waits there until the replicas have
// confirmed them, for a quarter of the timeout of a call. It returns how many have.
func (q *Conn) lasting(ctx context.Context, c *redis.Client, keys []string,
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

// runLasting calls a script once, and returns how many replicas have its writes.
func (q *Conn) runLasting(ctx context.Context, c *redis.Client, s *Script, name string,
	args []any) (v []any, acked int, err error) {
	keys := []string{keys.Zone(name, "zone", "")}
	function := q.functions.calls(s)
	once := func(p redis.Pipeliner) {
		if function {
			p.FCall(ctx, s.made().function, keys, args...)
		} else {
			s.Redis().EvalSha(ctx, p, keys, args...)
		}
	}
	ctx = hooks.Named(ctx, s.name)
	cmds, acked, err := q.lasting(ctx, c, keys, once)
	if function && (isUnknownFunction(err) || isNoFunctions(err)) {
		function = q.functions.again(ctx, c, s, err)
		cmds, acked, err = q.lasting(ctx, c, keys, once)
	}
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		if err := s.Redis().Load(ctx, c).Err(); err != nil {
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
