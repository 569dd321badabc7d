package care

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Fsck compares queue, jobs, counters and semaphores.
type Fsck struct{ c *queue.Conn }

// NewFsck returns the examination behind a connection.
func NewFsck(c *queue.Conn) *Fsck { return &Fsck{c} }

const (
	// fsckTries bounds how often a task that changes during the count is counted again.
	fsckTries = 5
	pageMax   = 200
)

// Fsck compares queue, jobs, counters and semaphores of a zone and returns the differences. With
// mend it corrects them, and the events name by note who wanted that, and why. It reads everything,
// in calls of at most 500 jobs, while other work continues.
func (q *Fsck) Fsck(ctx context.Context, zone string, mend bool, note string) (jobs.Fsck,
	error) {
	f := &exam{q: q, zone: zone, mend: mend, by: codec.OneLine(note), seen: map[string]bool{}}
	f.out.Zone, f.out.Findings = zone, []jobs.Finding{}
	if err := q.c.Places.KnowZone(ctx, zone); err != nil {
		return f.out, err
	}
	tasks, err := f.tasks(ctx)
	if err != nil {
		return f.out, err
	}
	for _, id := range tasks {
		if err := f.task(ctx, id); err != nil {
			return f.out, err
		}
	}
	if err := f.open(ctx); err != nil {
		return f.out, err
	}
	err = f.semaphores(ctx)
	return f.out, err
}

// freeSemaphores frees groups and limits whose holder has ended or does not exist.
func (q *Fsck) freeSemaphores(ctx context.Context, zone string) error {
	f := &exam{q: q, zone: zone, mend: true, seen: map[string]bool{}}
	return f.semaphores(ctx)
}

// open looks for tasks that have ended and were never closed.
func (f *exam) open(ctx context.Context) error {
	for rank := 0; ; {
		numbers, _, err := f.call(ctx, "open", "", rank, "")
		if err != nil || numbers[0] < pageMax {
			return err
		}
		rank += pageMax - numbers[1]
	}
}

// exam is one examination.
type exam struct {
	q    *Fsck
	out  jobs.Fsck
	zone string
	mend bool
	by   string          // who mends, and why; empty: no person
	seen map[string]bool // findings that were noted
}

// call calls the script and notes its findings.
func (f *exam) call(ctx context.Context, verb, object string, number any,
	hosts string) (numbers []int, texts []string, err error) {
	r, err := f.q.c.Script(ctx, queue.Scripts.Fsck, f.zone, verb, object, number, digitOr(f.mend),
		hosts,
		f.by)
	if err != nil {
		return nil, nil, err
	}
	status := r.Text()
	found := r.Texts()
	list := r.List()
	for len(list.Left) > 0 && list.Err == nil {
		numbers = append(numbers, list.Int())
	}
	texts = r.Texts()
	if r.Err != nil || list.Err != nil || status != "ok" {
		return nil, nil, fmt.Errorf("fsck %s of zone %s: answer %q, %w", verb, f.zone, status, r.Err)
	}
	for i := 0; i+3 < len(found); i += 4 {
		f.note(jobs.Finding{What: found[i], Object: found[i+1], Detail: found[i+2],
			Mended: found[i+3] == "1"})
	}
	return numbers, texts, nil
}

func digitOr(b bool) string {
	if b {
		return "1"
	}
	return ""
}

// note stores a finding, once.
func (f *exam) note(x jobs.Finding) {
	if key := x.What + " " + x.Object; !f.seen[key] {
		f.seen[key] = true
		f.out.Findings = append(f.out.Findings, x)
	}
}

// tasks returns the tasks in the index and those with a job in the queue.
func (f *exam) tasks(ctx context.Context) ([]string, error) {
	list, err := f.q.c.Redis().ZRange(ctx, keys.Hub("tasks", ""), 0, -1).Result()
	if err != nil {
		return nil, f.q.c.Say("fsck", err)
	}
	all := map[string]bool{}
	for _, id := range list {
		all[id] = true
	}
	for _, place := range []string{"queue", "again"} {
		for rank := 0; ; rank += pageMax {
			numbers, tasks, err := f.call(ctx, "page", place, rank, "")
			if err != nil {
				return nil, err
			}
			for _, id := range tasks {
				all[id] = true
			}
			if numbers[0] < pageMax {
				break
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// tally is the sum over the chunks of a task.
type tally struct {
	hosts, open, running, done int
	total, countedDone         int
	countedRunning             int
	committed                  bool
	outcomes                   map[string]int
	traceless                  []string
}

// task examines one task until the task did not change during a count.
func (f *exam) task(ctx context.Context, id string) error {
	for range fsckTries {
		t, still, err := f.count(ctx, id)
		if err != nil {
			return err
		}
		if t.hosts == 0 {
			return nil // not of this zone, or ended more than a day ago
		}
		if still {
			f.out.Tasks++
			f.out.Jobs += t.hosts
			return f.compare(ctx, id, t)
		}
	}
	f.note(jobs.Finding{What: jobs.FoundBusy, Object: id, Detail: "it changed while it was counted"})
	return nil
}

func (f *exam) count(ctx context.Context, id string) (t tally, still bool, err error) {
	t.outcomes = map[string]int{}
	still = true
	for chunk := 0; ; chunk++ {
		n, texts, err := f.call(ctx, "chunk", id, chunk, "")
		if err != nil || len(n) == 0 || n[0] == 0 {
			return t, still, err
		}
		if chunk > 0 && (n[5] != t.countedDone || n[6] != t.countedRunning) {
			still = false
		}
		t.hosts, t.open, t.running, t.done = t.hosts+n[0], t.open+n[1], t.running+n[2], t.done+n[3]
		t.total, t.countedDone, t.countedRunning, t.committed = n[4], n[5], n[6], n[7] == 1
		end := slices.Index(texts, "-")
		for i := 0; i+1 < end; i += 2 {
			k, _ := strconv.Atoi(texts[i+1])
			t.outcomes[texts[i]] += k
		}
		t.traceless = append(t.traceless, texts[end+1:]...)
	}
}

// compare compares the counters of a task with the count. A job that ended a day ago has left no
// trace; it is missing only if the counters miss it as well.
func (f *exam) compare(ctx context.Context, id string, t tally) error {
	if t.running != t.countedRunning {
		seen := fmt.Sprintf("%d %d", t.countedRunning, t.countedDone)
		if _, _, err := f.call(ctx, "counters", id, t.running, seen); err != nil {
			return err
		}
	}
	if !t.committed { // the rest is not put yet, or never will be
		t.total = min(t.total, t.hosts)
	}
	missing := t.total - t.countedDone - t.open
	switch {
	case missing == 0:
	case missing > 0 && missing == len(t.traceless):
		return f.bury(ctx, id, t.traceless)
	default:
		f.note(jobs.Finding{What: jobs.FoundCount, Object: id, Detail: fmt.Sprintf(
			"%d jobs, %d counted as ended, %d wait or run, %d without a trace",
			t.total, t.countedDone, t.open, len(t.traceless))})
	}
	return nil
}

// bury ends the jobs that are in no list.
func (f *exam) bury(ctx context.Context, id string, hosts []string) error {
	for chunk := range slices.Chunk(hosts, codec.HostsMax) {
		if _, _, err := f.call(ctx, "bury", id, 0, strings.Join(chunk, "\n")); err != nil {
			return err
		}
	}
	return nil
}

func (f *exam) semaphores(ctx context.Context) error {
	names, err := f.q.c.Redis().SMembers(ctx, keys.Zone(f.zone, "sems", "")).Result()
	if err != nil {
		return f.q.c.Say("fsck", err)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := f.semaphore(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// semaphore checks all holders of a semaphore, some at a time: the jobs of a task that wait between
// attempts hold its rule, and may be many.
func (f *exam) semaphore(ctx context.Context, name string) error {
	for cursor := uint64(0); ; {
		pairs, next, err := f.q.c.Redis().HScan(ctx, keys.Zone(f.zone, "sem:", name), cursor, "",
			pageMax).Result()
		if err != nil {
			return f.q.c.Say("fsck", err)
		}
		ids := []string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			ids = append(ids, pairs[i])
		}
		for {
			part := ids[:min(len(ids), pageMax)]
			if _, _, err := f.call(ctx, "sem", name, 0, strings.Join(part, "\n")); err != nil {
				return err
			}
			if ids = ids[len(part):]; len(ids) == 0 {
				break
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
