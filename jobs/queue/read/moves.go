package read

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// A Mover is a host that comes to another zone while it has work in the one before. Each zone has
// locks of its own, so two jobs could be on it at once.
type Mover struct {
	Host, From string
	Job        jobs.ID // has not ended, or still locks the host
}

// Moves looks at hosts that come to another zone.
type Moves struct {
	c     *queue.Conn
	tasks *Tasks
}

// NewMoves returns the reader of moves behind a connection.
func NewMoves(c *queue.Conn, tasks *Tasks) *Moves { return &Moves{c, tasks} }

// Movers returns the hosts that come to a zone with the next inventory, which says the zone of
// each, while they have work in another one. version is the inventory before. A zone whose Redis is
// away says nothing of its work.
func (q *Moves) Movers(ctx context.Context, version string, next map[string]string) ([]Mover,
	error) {
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return nil, err
	}
	come, err := q.comers(ctx, version, zones, next)
	if err != nil || len(come) == 0 {
		return nil, err
	}
	waiting, err := q.waiting(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]Mover{}
	for _, zone := range zones {
		of := func(host string) bool { return come[host] && next[host] != zone }
		if err := q.movers(ctx, zone, waiting, of, found); err != nil && !queue.OneZone(err) {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Mover) int {
		return strings.Compare(a.Host, b.Host)
	}), nil
}

// waiting returns the tasks that are put and do not begin yet, so that no zone has them as open:
// they wait for signatures, in a lane, or for the rest of their submit.
func (q *Moves) waiting(ctx context.Context) ([]string, error) {
	var signing, commits, lanes *redis.StringSliceCmd
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		signing = p.ZRange(ctx, keys.Hub("signing", ""), 0, -1)
		commits = p.SMembers(ctx, keys.Hub("commits", ""))
		lanes = p.SMembers(ctx, keys.Hub("lanes", ""))
		return nil
	})
	if err != nil {
		return nil, q.c.Say("moves", err)
	}
	list := slices.Concat(signing.Val(), commits.Val())
	for _, lane := range lanes.Val() {
		in, err := q.c.Redis().HKeys(ctx, keys.Hub("lane:", lane)).Result()
		if err != nil {
			return nil, q.c.Say("moves", err)
		}
		list = append(list, in...)
	}
	return list, nil
}

// comers returns the hosts that their next zone does not have in a version.
func (q *Moves) comers(ctx context.Context, version string, zones []string,
	next map[string]string) (map[string]bool, error) {
	lists := make([]*redis.StringSliceCmd, len(zones))
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, zone := range zones {
			lists[i] = p.HKeys(ctx, keys.Zone(zone, "hosts:", version))
		}
		return nil
	})
	if err != nil && !queue.Away(err) {
		return nil, q.c.Say("moves", err)
	}
	come, away := map[string]bool{}, map[string]bool{}
	for i, zone := range zones {
		away[zone] = lists[i].Err() != nil
	}
	for host, zone := range next {
		come[host] = !away[zone]
	}
	for i, zone := range zones {
		for _, host := range lists[i].Val() {
			if next[host] == zone {
				delete(come, host)
			}
		}
	}
	maps.DeleteFunc(come, func(_ string, comes bool) bool { return !comes })
	return come, nil
}

// movers adds the hosts that have work in a zone, out of those that are of interest. waiting has
// tasks beside the open ones.
func (q *Moves) movers(ctx context.Context, zone string, waiting []string, of func(string) bool,
	found map[string]Mover) error {
	now, err := q.c.Now(ctx, zone)
	if err != nil {
		return err
	}
	var locks *redis.MapStringStringCmd
	var open *redis.StringSliceCmd
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		locks = p.HGetAll(ctx, keys.Zone(zone, "locks", ""))
		open = p.ZRange(ctx, keys.Zone(zone, "open", ""), 0, -1)
		return nil
	})
	if err != nil {
		return q.c.Say("moves", err)
	}
	for host, text := range locks.Val() { // end, token, job
		words := strings.Fields(text)
		if len(words) != 3 || !of(host) {
			continue
		}
		if until, _ := jobs.ParseMicros(words[0]); until > jobs.MicrosOf(now) {
			found[host] = Mover{host, zone, jobs.ID(words[2])}
		}
	}
	has := map[string][]string{} // host to open tasks with a job there
	each := func(task string, f func(host string)) error {
		return q.c.Places.EachChunk(ctx, zone, jobs.TaskID(task), 0, func(hosts []string) error {
			for _, host := range hosts {
				if _, known := found[host]; !known && of(host) {
					f(host)
				}
			}
			return nil
		})
	}
	for _, task := range open.Val() {
		err := each(task, func(host string) { has[host] = append(has[host], task) })
		if err != nil {
			return err
		}
	}
	for _, task := range waiting { // nothing of it has ended
		if slices.Contains(open.Val(), task) {
			continue
		}
		ended, err := q.c.Redis().HExists(ctx, keys.Zone(zone, "task:", task), "ended").Result()
		if err == nil && !ended {
			err = each(task, func(host string) {
				found[host] = Mover{host, zone, jobs.NewID(jobs.TaskID(task), host)}
			})
		}
		if err != nil {
			return q.c.Say("moves", err)
		}
	}
	for host, tasks := range has {
		list, err := q.tasks.onHost(ctx, zone, host, tasks)
		if err != nil {
			return err
		}
		for _, j := range list {
			if j.State != jobs.Ended {
				found[host] = Mover{host, zone, j.ID}
			}
		}
	}
	return nil
}
