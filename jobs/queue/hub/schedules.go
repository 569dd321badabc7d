package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Schedules stores schedules, and the progress of each.
type Schedules struct {
	c  *queue.Conn
	by Voucher
}

// NewSchedules returns the schedules behind a connection.
func NewSchedules(c *queue.Conn) *Schedules { return &Schedules{c, unsigned{}} }

// VouchedBy returns the same schedules, which v signs.
func (q *Schedules) VouchedBy(v Voucher) *Schedules { return &Schedules{q.c, v} }

// DutySchedules is the duty of the server that fires schedules; tick.lua checks which one has it.
const DutySchedules = "schedules"

// Schedule is a schedule as it was read.
type Schedule struct {
	jobs.Schedule
	Ticks jobs.Ticking `json:"ticks"`

	kept kept
}

// kept is a schedule as Redis has it.
type kept struct {
	read, ticks string // texts; ticks is empty if Redis has forgotten them
	doubt       error  // why no server has vouched for it; nil: one has
}

// Doubt returns an error unless a server wrote the schedule: it must make no tasks.
func (s Schedule) Doubt() error { return s.kept.doubt }

// Forgotten reports whether Redis has lost the progress of the schedule.
func (s Schedule) Forgotten() bool { return s.kept.ticks == "" }

// Schedules returns the schedules by name.
func (q *Schedules) Schedules(ctx context.Context) ([]Schedule, error) {
	var schedules, ticks *redis.MapStringStringCmd
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		schedules = p.HGetAll(ctx, keys.Hub("schedules", ""))
		ticks = p.HGetAll(ctx, keys.Hub("ticks", ""))
		return nil
	})
	if err != nil {
		return nil, q.c.Say("schedules", err)
	}
	out := make([]Schedule, 0, len(schedules.Val()))
	for name, text := range schedules.Val() {
		s, err := q.readSchedule(name, text, ticks.Val()[name])
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Schedule) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Schedule returns the schedule with this name.
func (q *Schedules) Schedule(ctx context.Context, name string) (Schedule, error) {
	var schedule, ticks *redis.StringCmd
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		schedule = p.HGet(ctx, keys.Hub("schedules", ""), name)
		ticks = p.HGet(ctx, keys.Hub("ticks", ""), name)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return Schedule{}, q.c.Say("schedule", err)
	}
	if schedule.Err() != nil {
		return Schedule{}, fmt.Errorf("schedule %s: %w", name, queue.ErrNotFound)
	}
	return q.readSchedule(name, schedule.Val(), ticks.Val())
}

func (q *Schedules) readSchedule(name, text, ticks string) (Schedule, error) {
	s := Schedule{kept: kept{read: text, ticks: ticks}}
	plain, doubt := q.by.Vouched(name, text)
	s.kept.doubt = doubt
	err := codec.Strictly(plain, &s.Schedule)
	if err == nil && s.Name != name {
		err = errors.New("it has another name")
	}
	if err == nil && ticks != "" {
		err = json.Unmarshal([]byte(ticks), &s.Ticks)
	}
	if err != nil {
		return s, fmt.Errorf("schedule %s: what is in Redis cannot be read: %w", name, err)
	}
	return s, nil
}

// HubTime returns the time of the Redis of the hub, by which schedules fire.
func (q *Schedules) HubTime(ctx context.Context) (time.Time, error) {
	return q.c.Now(ctx, keys.HubZone)
}

// ScheduleStamp returns a text that changes with every change of a schedule by an operator, and the
// time, in one call.
func (q *Schedules) ScheduleStamp(ctx context.Context) (string, time.Time, error) {
	c, _, err := q.c.At(ctx, keys.HubZone)
	if err != nil {
		return "", time.Time{}, err
	}
	var stamp *redis.StringCmd
	var now *redis.TimeCmd
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		stamp = p.HGet(ctx, keys.Hub("stamps", ""), "schedules")
		now = p.Time(ctx)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		q.c.Elsewhere(ctx)
		return "", time.Time{}, q.c.Say("schedules", err)
	}
	return stamp.Val(), now.Val(), nil
}

// A ScheduleChange replaces a schedule as it was read. A zero Was adds a new schedule; a nil To
// removes the schedule, and its tasks continue.
type ScheduleChange struct {
	Was Schedule
	To  *jobs.Schedule
}

// ChangeSchedule replaces a schedule as it was read. A zero was adds a new one. ErrStale: it was
// changed meanwhile.
func (q *Schedules) ChangeSchedule(ctx context.Context, was Schedule, to jobs.Schedule) error {
	return q.changeSchedules(ctx, "", []ScheduleChange{{was, &to}})
}

// RemoveSchedule removes a schedule as it was read. Its tasks continue.
func (q *Schedules) RemoveSchedule(ctx context.Context, was Schedule) error {
	return q.changeSchedules(ctx, "", []ScheduleChange{{Was: was}})
}

// ChangeSchedules makes all of these changes or none. ErrStale: one of the schedules, or any other
// schedule since the stamp was read, was changed meanwhile.
func (q *Schedules) ChangeSchedules(ctx context.Context, stamp string,
	list []ScheduleChange) error {
	if len(list) == 0 {
		return nil
	}
	return q.changeSchedules(ctx, cmp.Or(stamp, "0"), list)
}

func (q *Schedules) changeSchedules(ctx context.Context, stamp string,
	list []ScheduleChange) error {
	args := []any{stamp}
	what := fmt.Sprintf("%d schedules", len(list))
	all, err := q.written(list)
	if err != nil {
		return err
	}
	for i, c := range list {
		args = append(args, c.name(), c.Was.kept.read, all[i].text, all[i].ticks)
		if len(list) == 1 {
			what = "schedule " + c.name()
		}
	}
	r, err := q.c.HubScript(ctx, queue.Scripts.Schedule, args...)
	if err != nil {
		return err
	}
	if r.Text() != "ok" {
		return fmt.Errorf("%s: %w", what, queue.ErrStale)
	}
	return nil
}

// written has the texts that a change writes: a schedule, empty if it goes, and the ticks with
// which a new one begins.
type written struct{ text, ticks string }

// written returns what each change writes.
func (q *Schedules) written(list []ScheduleChange) ([]written, error) {
	all := make([]written, len(list))
	for i, c := range list {
		if c.To == nil {
			continue
		}
		text, err := json.Marshal(c.To)
		if err != nil {
			return nil, err
		}
		if all[i].text, err = q.by.Vouch(c.To.Name, string(text)); err != nil {
			return nil, err
		}
		if c.Was.kept.read == "" {
			begin, err := json.Marshal(jobs.Ticking{Last: c.To.Since})
			if err != nil {
				return nil, err
			}
			all[i].ticks = string(begin)
		}
	}
	return all, nil
}

// name returns the name of the schedule that is changed.
func (c ScheduleChange) name() string {
	if c.To != nil {
		return c.To.Name
	}
	return c.Was.Name
}

// Tick stores the progress of a schedule, for the leader of a term. It returns the schedule as it
// is afterwards. ErrDeposed: another server leads. ErrStale and ErrNotFound: the caller must read
// it again.
func (q *Schedules) Tick(ctx context.Context, term int64, was Schedule, to jobs.Ticking) (Schedule,
	error) {
	to.Term = term
	text, err := json.Marshal(to)
	if err != nil {
		return was, err
	}
	r, err := q.c.HubScript(ctx, queue.Scripts.Tick, was.Name, was.kept.ticks, string(text),
		strconv.FormatInt(term, 10))
	if err != nil {
		return was, err
	}
	switch r.Text() {
	case "ok":
		was.Ticks, was.kept.ticks = to, string(text)
		return was, nil
	case "deposed":
		err = queue.ErrDeposed
	case "gone":
		err = queue.ErrNotFound
	default:
		err = queue.ErrStale
	}
	return was, fmt.Errorf("schedule %s: %w", was.Name, err)
}

// Abandon ends a task of a tick that was submitted in part. It reports whether it did: nothing of
// the task was committed, so nothing of it can be committed any more.
func (q *Schedules) Abandon(ctx context.Context, id jobs.TaskID, of jobs.Terms, note string) (bool,
	error) {
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return false, err
	}
	found := false
	for _, zone := range zones {
		h, err := q.c.Redis().HMGet(ctx, keys.Zone(zone, "task:", string(id)), "spec",
			"committed").Result()
		if err != nil {
			return false, q.c.Say("abandon", err)
		}
		text, _ := h[0].(string)
		var spec jobs.Spec
		if text == "" || json.Unmarshal([]byte(text), &spec) != nil || spec.Schedule != of.Schedule ||
			!spec.Tick.Equal(of.Tick.Time) {
			continue
		}
		if h[1] != nil {
			return false, nil
		}
		found = true
		_, err = q.c.Script(ctx, queue.Scripts.End, zone, string(id), string(jobs.Cancelled),
			codec.OneLine(note),
			0, "", "")
		if err != nil {
			return false, err
		}
	}
	return found, nil
}
