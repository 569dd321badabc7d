package queue

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
)

// Lease is how long a server has a duty after it asked for it. One that does not
// ask again loses it then, and another gets it.
const Lease = 3 * time.Second

// Term is what is known of a duty after a call of Lead.
type Term struct {
	Number int64  // grows with each change of the leader; 0: nobody has the duty
	Who    string // has it
	Mine   bool   // the caller has it, for a Lease from when the call was sent
}

// Lead asks for a duty, or to keep it: held is the number of the term that the
// caller has, 0 if it has none. Who lost its term by being late gets a new one, if
// nobody was faster, and must treat it as one that it never had before.
func (q *Queue) Lead(ctx context.Context, duty, who string, held int64) (Term, error) {
	return q.term(ctx, "lead", duty, who, held)
}

// Leave gives a duty back, so that another need not wait for the end of the lease.
func (q *Queue) Leave(ctx context.Context, duty string, held int64) error {
	_, err := q.term(ctx, "leave", duty, "", held)
	return err
}

func (q *Queue) term(ctx context.Context, verb, duty, who string, held int64) (Term, error) {
	r, err := q.hubScript(ctx, scripts.lead, verb, duty, oneLine(who), strconv.FormatInt(held, 10),
		Lease.Milliseconds())
	if err != nil {
		return Term{}, err
	}
	status := r.text()
	t := Term{Number: int64(r.micros()), Who: r.text(), Mine: status == "mine"}
	if r.err != nil {
		return Term{}, fmt.Errorf("redis %s: lead: %w", q.cfg.Where(), r.err)
	}
	return t, nil
}

// Leaders lists the duties that anybody ever had, by name, and who has them now.
func (q *Queue) Leaders(ctx context.Context) ([]jobs.Duty, error) {
	terms, err := q.rdb.HGetAll(ctx, hubKey("terms", "")).Result()
	if err != nil || len(terms) == 0 {
		return nil, q.say("duties", err)
	}
	names := slices.Sorted(maps.Keys(terms))
	cmds := make([]*redis.StringCmd, len(names))
	// A duty that nobody has shows as an error of the one call.
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			cmds[i] = p.Get(ctx, hubKey("leader:", name))
		}
		return nil
	})
	if err != nil && q.say("duties", err) != redis.Nil {
		return nil, q.say("duties", err)
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

// hubScript calls a script that works on the keys of the hub alone.
func (q *Queue) hubScript(ctx context.Context, s *script, args ...any) (reader, error) {
	c, _, err := q.at(ctx, HubZone)
	if err != nil {
		return reader{}, err
	}
	answer, err := s.run(ctx, c, HubZone, args...).Result()
	if err != nil {
		q.elsewhere(ctx)
		return reader{}, q.say(s.name, err)
	}
	if list, ok := answer.([]any); ok {
		return reader{v: list}, nil
	}
	return reader{v: []any{answer}}, nil
}
