package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/form"
	"muster/jobs/queue/keys"
)

// Leaders gives each duty to one server at a time.
type Leaders struct{ c *queue.Conn }

// NewLeaders returns the duties behind a connection.
func NewLeaders(c *queue.Conn) *Leaders { return &Leaders{c} }

// Lease is the time for which a server has a duty after it asked for it. If the server does not ask
// again in time, another one gets the duty.
const Lease = 3 * time.Second

// Term is the state of a duty after a call of Lead.
type Term struct {
	Number int64  // grows with each change of the leader; 0: nobody has the duty
	Who    string // the server that has it
	Mine   bool   // the caller has it, for a Lease from when the call was sent
}

// Lead asks for a duty, or to keep it: held is the number of the caller's term, 0 if it has none. A
// caller that lost its term by being late gets a new one if no other server was faster, and must
// treat it as a term that it never had before.
func (q *Leaders) Lead(ctx context.Context, duty, who string, held int64) (Term, error) {
	return q.term(ctx, "lead", duty, who, held)
}

// Leave gives a duty up, so that another server need not wait for the end of the lease.
func (q *Leaders) Leave(ctx context.Context, duty string, held int64) error {
	_, err := q.term(ctx, "leave", duty, "", held)
	return err
}

func (q *Leaders) term(ctx context.Context, verb, duty, who string, held int64) (Term, error) {
	r, err := q.c.HubScript(ctx, queue.Scripts.Lead, verb, duty, codec.OneLine(who),
		strconv.FormatInt(held, 10), Lease.Milliseconds(), form.Mine)
	if err != nil {
		return Term{}, err
	}
	status := r.Text()
	t := Term{Number: int64(r.Micros()), Who: r.Text(), Mine: status == "mine"}
	if r.Err != nil {
		return Term{}, fmt.Errorf("redis %s: lead: %w", q.c.Config().Where(), r.Err)
	}
	return t, nil
}

// Leaders returns all duties that a server ever had, by name, with the servers that have them now.
func (q *Leaders) Leaders(ctx context.Context) ([]jobs.Duty, error) {
	terms, err := q.c.Redis().HGetAll(ctx, keys.Hub("terms", "")).Result()
	if err != nil || len(terms) == 0 {
		return nil, q.c.Say("duties", err)
	}
	names := slices.Sorted(maps.Keys(terms))
	cmds := make([]*redis.StringCmd, len(names))
	// A duty without a server is an error of its own call.
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			cmds[i] = p.Get(ctx, keys.Hub("leader:", name))
		}
		return nil
	})
	if err != nil && q.c.Say("duties", err) != redis.Nil {
		return nil, q.c.Say("duties", err)
	}
	out := make([]jobs.Duty, len(names))
	for i, name := range names {
		number, who, _ := strings.Cut(cmds[i].Val(), " ")
		out[i] = jobs.Duty{Duty: name, Server: who}
		if out[i].Term, _ = strconv.ParseInt(number, 10, 64); out[i].Term == 0 {
			out[i].Term, _ = strconv.ParseInt(terms[name], 10, 64)
		}
	}
	return out, nil
}
