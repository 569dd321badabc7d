package redistest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/testkit/queuetest"
)

// Check fails the test unless a zone is consistent: every unfinished job is in exactly one of
// queue, again and held:*, no finished job is in any, and the counters of the tasks match the
// jobs. It reads the whole zone, so it is for tests only.
func Check(t testing.TB, url, zone string) {
	t.Helper()
	// Not the test's context: that has ended where this is a clean-up.
	ctx := context.Background()
	for _, mistake := range Mistakes(ctx, url, zone) {
		t.Error("check: " + mistake)
	}
	c := queue.DefaultConfig()
	c.URL, c.Embedded = url, true
	checkCommand(t, c, zone)
}

// checkCommand fails the test unless `muster fsck` finds nothing either.
func checkCommand(t testing.TB, c queue.Config, zone string) {
	t.Helper()
	q, err := queuetest.OpenLazy(c)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	f, err := q.Fsck(context.Background(), zone, false, "")
	if err != nil && !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("fsck: %v", err)
	}
	for _, x := range f.Findings {
		t.Errorf("fsck: %s: %s: %s", x.Object, x.What, x.Detail)
	}
}

// CheckIn is Check for a Redis of any kind.
func CheckIn(t testing.TB, cfg queue.Config, zone string) {
	t.Helper()
	rdb, err := dial(context.Background(), cfg, zone)
	if err != nil {
		t.Error(err)
		return
	}
	defer rdb.Close()
	for _, mistake := range check(context.Background(), rdb, prefix(zone)) {
		t.Error("check: " + mistake)
	}
	checkCommand(t, cfg, zone)
}

// Mistakes returns the contradictions that Check finds.
func Mistakes(ctx context.Context, url, zone string) []string {
	o, err := redis.ParseURL(url)
	if err != nil {
		return []string{err.Error()}
	}
	rdb := redis.NewClient(o)
	defer rdb.Close()
	return check(ctx, rdb, prefix(zone))
}

func prefix(zone string) string { return "muster:{" + zone + "}:" }

func check(ctx context.Context, rdb *redis.Client, p string) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	places := map[string][]string{}
	keys, err := rdb.Keys(ctx, p+"*").Result()
	if err != nil {
		say("%v", err)
	}
	for _, key := range keys {
		name := strings.TrimPrefix(key, p)
		if name == "queue" || name == "again" || strings.HasPrefix(name, "held:") {
			for _, id := range rdb.ZRange(ctx, key, 0, -1).Val() {
				places[id] = append(places[id], name)
			}
		}
	}
	kept := records(ctx, rdb, p, slices.Collect(maps.Keys(places)))
	open := map[string]int{}
	for id, in := range places {
		if len(in) != 1 {
			say("job %s is in %v", id, in)
		}
		state := kept[id].state()
		if state == "ended" {
			say("job %s ended, but is in %v", id, in)
		}
		if state == "running" && in[0] != "again" {
			say("job %s runs, but is in %v", id, in)
		}
		task, _, _ := strings.Cut(id, ":")
		open[task]++
	}
	for _, key := range keys {
		task, ok := strings.CutPrefix(strings.TrimPrefix(key, p), "task:")
		if !ok {
			continue
		}
		wrong = append(wrong, checkTask(ctx, rdb, p, task, open[task])...)
		delete(open, task)
	}
	for task, n := range open {
		say("%d jobs of task %s, which is not there", n, task)
	}
	return append(wrong, checkSemaphores(ctx, rdb, p, keys)...)
}

// checkSemaphores finds holders that should have left, and indexes that lie. A
// limit may have been lowered meanwhile; a group has one place.
func checkSemaphores(ctx context.Context, rdb *redis.Client, p string, keys []string) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	index := rdb.SMembers(ctx, p+"sems").Val()
	for _, key := range keys {
		name, ok := strings.CutPrefix(strings.TrimPrefix(key, p), "sem:")
		if !ok {
			continue
		}
		if !slices.Contains(index, name) {
			say("semaphore %s is held, but is not in sems", name)
		}
		holders := rdb.HKeys(ctx, key).Val()
		if strings.HasPrefix(name, "group/") && len(holders) > 1 && !slices.Contains(holders, "frozen") {
			say("group %s has %d holders: %v", name, len(holders), holders)
		}
		kept := records(ctx, rdb, p, holders)
		for _, id := range holders {
			if state := kept[id].state(); id != "frozen" && (state == "" || state == "ended") {
				say("job %s holds %s, but is %q", id, name, state)
			}
		}
	}
	for _, name := range index {
		if rdb.Exists(ctx, p+"sem:"+name).Val() == 0 {
			say("semaphore %s is in sems, but nobody holds it", name)
		}
	}
	return wrong
}

// records reads what is kept of many jobs; jobs that were never taken are left out.
func records(ctx context.Context, rdb *redis.Client, p string, ids []string) map[string]record {
	out := map[string]record{}
	for chunk := range slices.Chunk(ids, 1000) {
		cmds := make([]*redis.StringCmd, len(chunk))
		rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, id := range chunk {
				task, host, _ := strings.Cut(id, ":")
				cmds[i] = pipe.HGet(ctx, p+"task:"+task, ":"+host)
			}
			return nil
		})
		for i, id := range chunk {
			if v := cmds[i].Val(); v != "" {
				out[id] = record(v)
			}
		}
	}
	return out
}

// record is the record of a job.
type record string

func (r record) state() string {
	state, _, _ := strings.Cut(string(r), " ")
	return state
}

// outcome is empty for a job that has not ended.
func (r record) outcome() string {
	lines := strings.Split(string(r), "\n")
	if r.state() != "ended" || len(lines) < 4 {
		return ""
	}
	return strings.Split(lines[3], " ")[1]
}

func checkTask(ctx context.Context, rdb *redis.Client, p, task string, open int) (wrong []string) {
	h := rdb.HGetAll(ctx, p+"task:"+task).Val()
	number := func(field string) (n int) {
		fmt.Sscan(h[field], &n)
		return n
	}
	outcomes := map[string]int{}
	running := 0
	var ids []string
	for field, list := range h {
		if !strings.HasPrefix(field, "hosts:") {
			continue
		}
		for host := range strings.SplitSeq(list, "\n") {
			ids = append(ids, task+":"+host)
		}
	}
	hosts := len(ids)
	for _, r := range records(ctx, rdb, p, ids) {
		if r.state() == "running" {
			running++
		}
		if o := r.outcome(); o != "" {
			outcomes[o]++
		}
	}
	done := 0
	for o, n := range outcomes {
		done += n
		if number("o:"+o) != n {
			wrong = append(wrong, fmt.Sprintf("task %s counts %d %s, there are %d", task, number("o:"+o), o, n))
		}
	}
	for _, c := range []struct {
		what        string
		counted, is int
	}{{"done", number("done"), done}, {"running", number("running"), running},
		{"open", number("total") - number("done"), open}} {
		if c.counted != c.is && h["committed"] != "" {
			wrong = append(wrong, fmt.Sprintf("task %s counts %d %s, there are %d (of %d hosts)",
				task, c.counted, c.what, c.is, hosts))
		}
	}
	return wrong
}

// BytesReceived returns how many bytes a server has received since its start.
func BytesReceived(t testing.TB, s *Server) (n int64) {
	t.Helper()
	c := client(s.Addr)
	defer c.Close()
	info, err := c.Info(t.Context(), "stats").Result()
	must(t, err)
	for line := range strings.Lines(info) {
		if number, ok := strings.CutPrefix(line, "total_net_input_bytes:"); ok {
			n, err = strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			must(t, err)
		}
	}
	return n
}
