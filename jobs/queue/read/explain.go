package read

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
	"muster/jobs/staff"
)

// Reasons explain in words why a job that could run does not. All are empty if only other jobs are
// ahead of it.
type Reasons struct {
	// Orders names orders of people: a halt, a pause, a stop. The lack of a working node counts too.
	Orders string
	// Shut says that the job's zone is frozen, or its wave not open.
	Shut string
	// Own names what this job itself waits for: a resource of another job, its next try, its window.
	// For a job in hand it names the person who stops it.
	Own string
}

// String returns all reasons.
func (r Reasons) String() string { return together(together(r.Orders, r.Shut), r.Own) }

// together joins two reasons; each may be empty.
func together(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// An explainer finds out why jobs of one task in one zone do not run. Every view takes its words
// from here.
type explainer struct {
	q    *Tasks
	zone string
	task jobs.TaskID
	node string // why no node begins jobs in the zone; empty: one does, or nobody asked
}

// Explain finds out why jobs of one task do not run, notes that in them and returns it for each. Of
// those that wait for resources of others it explains at most so many: each costs several calls.
func (q *Tasks) Explain(ctx context.Context, list []jobs.JobInfo, most int) ([]Reasons, error) {
	out := make([]Reasons, len(list))
	open := slices.ContainsFunc(list, func(j jobs.JobInfo) bool { return j.State != jobs.Ended })
	if !open {
		return out, nil
	}
	at := make(map[string]int, len(list))
	ids := make([]jobs.ID, len(list))
	for i, j := range list {
		at[j.Host], ids[i] = i, j.ID
	}
	zones, err := q.c.Places.ZonesOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	all, err := q.nodes.Working(ctx)
	if err != nil {
		return nil, err
	}
	for zone, hosts := range zones {
		e := explainer{q, zone, ids[0].Task(), staff.MissingOn(all, zone)}
		part := make([]*jobs.JobInfo, len(hosts))
		for i, host := range hosts {
			part[i] = &list[at[host]]
		}
		reasons, err := e.all(ctx, part, &most)
		if err != nil {
			return nil, err
		}
		for i, host := range hosts {
			out[at[host]], part[i].Why = reasons[i], reasons[i].String()
		}
	}
	return out, nil
}

// all explains some jobs; most is the number of waiting jobs whose resources it may still look up.
func (e explainer) all(ctx context.Context, list []*jobs.JobInfo, most *int) ([]Reasons, error) {
	out, err := e.orders(ctx, list)
	if err != nil {
		return nil, err
	}
	stops, err := e.stops(ctx, list)
	if err != nil {
		return nil, err
	}
	for i, j := range list {
		switch out[i].Own = j.Why; j.State {
		case jobs.Blocked:
			// A person who could free that resource must learn that the job would not begin then either.
			if *most--; *most >= 0 {
				if j.Waits, out[i].Own, err = e.blocked(ctx, j.ID); err != nil {
					return nil, err
				}
			}
		case jobs.Queued, jobs.Paused, jobs.Held:
			if out[i].Orders+out[i].Shut != "" {
				out[i].Own = ""
			}
		case jobs.Verify: // its state on the host is verified in any case
			out[i].Orders, out[i].Shut = e.node, ""
		case jobs.Lost:
			out[i] = Reasons{Orders: e.node, Own: cmp.Or(stops[j.Host], j.Why)}
		case jobs.Running:
			out[i] = Reasons{Own: cmp.Or(stops[j.Host], j.Why)}
		case jobs.Ended:
			out[i] = Reasons{Own: j.Why}
		}
	}
	return out, nil
}

// blocked returns the resource that a job waits for, and who has it.
func (e explainer) blocked(ctx context.Context, id jobs.ID) (name, why string, err error) {
	name, err = e.q.groups.waitsFor(ctx, e.zone, id)
	if err == nil {
		why, err = e.q.groups.whyBlocked(ctx, e.zone, name)
	}
	return name, why, err
}

// stops returns, by host, who has ordered that a job in hand ends.
func (e explainer) stops(ctx context.Context, list []*jobs.JobInfo) (map[string]string, error) {
	var hosts []string
	fields := []string{"cancel"}
	for _, j := range list {
		if j.State == jobs.Running || j.State == jobs.Lost {
			hosts, fields = append(hosts, j.Host), append(fields, codec.RecordField(j.Host))
		}
	}
	if len(hosts) == 0 {
		return nil, nil
	}
	v, err := e.q.c.Redis().HMGet(ctx, keys.Zone(e.zone, "task:", string(e.task)), fields...).Result()
	if err != nil {
		return nil, e.q.c.Say("job", err)
	}
	out := map[string]string{}
	for i, host := range hosts {
		r, err := codec.ReadRecord(codec.TextOf(v, i+1))
		if err != nil {
			return nil, err
		}
		if note := cmp.Or(r.Cancel, codec.TextOf(v, 0)); note != "" {
			out[host] = "it is being stopped: " + note
		}
	}
	return out, nil
}

// standingOrders holds what keeps all jobs of a task in a zone, and the customers that are paused.
type standingOrders struct {
	words     []string
	shut      string // the zone is frozen
	customers map[string]codec.Standing
	inventory string // of the task
	held      string // why a job is held without an order
}

// orders returns for each job who ordered that it must not begin, and the obstacles in its zone and
// task.
func (e explainer) orders(ctx context.Context, list []*jobs.JobInfo) ([]Reasons, error) {
	s, err := e.standing(ctx)
	if err != nil {
		return nil, err
	}
	traits := make([]any, len(list))
	if len(s.customers) > 0 && len(list) > 0 {
		hosts := make([]string, len(list))
		for i, j := range list {
			hosts[i] = j.Host
		}
		key := keys.Zone(e.zone, "traits:", s.inventory)
		if traits, err = e.q.c.Redis().HMGet(ctx, key, hosts...).Result(); err != nil {
			return nil, e.q.c.Say("job", err)
		}
	}
	out := make([]Reasons, len(list))
	for i, j := range list {
		words := slices.Clone(s.words)
		customer, _, _ := strings.Cut(codec.TextOf(traits, i), " ")
		if note := s.customers[customer].Note; note != "" {
			words = append(words, "its customer is paused: "+note)
		}
		if out[i].Shut = s.shut; len(words) == 0 && s.shut == "" && j.State == jobs.Held {
			out[i].Shut = s.held
		}
		if e.node != "" {
			words = append(words, e.node)
		}
		out[i].Orders = strings.Join(slices.Compact(words), "; ")
	}
	return out, nil
}

func (e explainer) standing(ctx context.Context) (s standingOrders, err error) {
	var task, all *redis.SliceCmd
	var now *redis.TimeCmd
	c, _, err := e.q.c.At(ctx, e.zone) // TIME is of no zone: elsewhere it would ask any server
	if err != nil {
		return s, err
	}
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		task = p.HMGet(ctx, keys.Zone(e.zone, "task:", string(e.task)), "pausedNote", "stoppedNote",
			"inventory", "committed")
		all = p.HMGet(ctx, keys.Zone(e.zone, "zone", ""), "halted", "paused", "frozen", "why",
			"customers", "owed")
		now = p.Time(ctx)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return s, e.q.c.Say("job", err)
	}
	say := func(words, note string) {
		if note != "" {
			s.words = append(s.words, words+note)
		}
	}
	say("all is halted: ", codec.TextOf(all.Val(), 0))
	if s.shut, err = e.shut(ctx, all.Val(), now.Val()); err != nil {
		return s, err
	}
	say("its zone is paused: ", codec.TextOf(all.Val(), 1))
	say("its task is paused: ", codec.TextOf(task.Val(), 0))
	say("its task is stopped: ", codec.TextOf(task.Val(), 1))
	s.customers, s.inventory = codec.ReadCustomers(codec.TextOf(all.Val(),
		4)), codec.TextOf(task.Val(), 2)
	if s.held = "its wave is not open yet"; codec.TextOf(task.Val(), 3) == "" {
		s.held = "its task is being submitted, or waits for signatures or in a lane"
	}
	return s, nil
}

// shut returns that the zone is frozen, read from its fields 2, 3 and 5. If history is asked first,
// the end of the freeze is not known.
func (e explainer) shut(ctx context.Context, zone []any, now time.Time) (string, error) {
	micros, _ := jobs.ParseMicros(codec.TextOf(zone, 2))
	until, owed := jobs.TimeOf(micros), codec.TextOf(zone, 5)
	switch {
	case owed == "" && until.After(now):
		return "its zone is frozen until " + until.String() + ": " + codec.TextOf(zone, 3), nil
	case owed == "":
		return "", nil
	}
	words := "its zone is frozen until history was asked: " + codec.WhyShut(codec.TextOf(zone, 3),
		owed)
	away, err := e.q.history.HistoryAway(ctx)
	if err != nil || away.Since.IsZero() {
		return words, err
	}
	return words + "; history is away since " + away.Since.String() + " (" + away.Note +
		"); `muster nodes thaw --reason …` starts it without", nil
}
