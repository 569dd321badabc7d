package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/fleet"
	"muster/internal/proc"
	"muster/internal/wording"
	"muster/jobs"
)

// wantMax bounds the jobs that one call hands out.
const wantMax = 256

// knownMax bounds the tasks that a caller may name as known.
const knownMax = 64

// errorMax bounds the bytes that are kept of a result's error.
const errorMax = 300

// outputMax bounds the bytes of a result's output; workers bound theirs below.
const outputMax = 1 << 20

// Step delivers results and takes jobs, in one round trip. If it returns an
// error it is not known whether it was carried out: repeat it with the same
// Request until it answers; the queue gives the earlier answer to a repetition.
func (q *Queue) Step(ctx context.Context, name string, s jobs.Step) (jobs.Reply, error) {
	if err := checkStep(s); err != nil {
		return jobs.Reply{}, err
	}
	if err := q.Enter(ctx, name); err != nil {
		return jobs.Reply{}, err
	}
	q.giveUp(name, s.Results)
	sent := proc.Boot()
	reply, acked, err := q.step(ctx, name, s)
	if err != nil {
		return jobs.Reply{}, err
	}
	if why := q.fewer(acked); why != "" && len(reply.Jobs) > 0 {
		if reply, err = q.putBack(ctx, name, s, reply, why); err != nil {
			return jobs.Reply{}, err
		}
	}
	q.note(name, s, reply, sent)
	if reply.Status == jobs.StatusFrozen {
		reply.Why = q.why(ctx, name)
	}
	return reply, nil
}

// step calls the script, and tells how many replicas have what it did.
func (q *Queue) step(ctx context.Context, name string, s jobs.Step) (jobs.Reply, int, error) {
	args := make([]any, 0, 8+15*len(s.Results))
	args = append(args, s.Node, s.Slot, s.Request, s.Want, "", known(s.Known), "",
		len(s.Results))
	for _, r := range s.Results {
		args = appendResult(args, r)
	}
	r, err := q.stamped(ctx, scripts.step, name, func(stamp string) []any {
		args[6] = stamp
		if !q.cfg.Embedded {
			args[4] = stamp
		}
		return args
	})
	if err != nil {
		return jobs.Reply{}, 0, err
	}
	reply, err := readReply(r)
	if err != nil {
		return jobs.Reply{}, 0, fmt.Errorf("step in zone %s: %w", name, err)
	}
	return reply, r.acked, nil
}

// why tells why a zone is frozen. It is for people, so a failure does not matter.
func (q *Queue) why(ctx context.Context, name string) string {
	v, err := q.rdb.HMGet(ctx, zoneKey(name, "zone", ""), "why", "epoch", "owed").Result()
	if err != nil {
		return "for a reason that could not be read"
	}
	why, _ := v[0].(string)
	epoch, _ := v[1].(string)
	q.follow(ctx, name, epoch) // a failure does not matter: the next call tries again
	owed, _ := v[2].(string)
	return whyShut(why, owed)
}

// follow calls epoch if the zone is in another than this handle knows: somebody
// else found that it was forgotten, and shall hear what is in hand here, and how
// long locks are.
func (q *Queue) follow(ctx context.Context, name, epoch string) error {
	q.mu.Lock()
	z := q.zones[name]
	same := z == nil || z.epoch == "" || z.epoch == epoch
	q.mu.Unlock()
	if same {
		return nil
	}
	return q.epoch(ctx, name, 0)
}

// learn notes how long a lock may be.
func (q *Queue) learn(name string, lock time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if z := q.zones[name]; z != nil {
		z.longest = max(z.longest, lock)
	}
}

func checkStep(s jobs.Step) error {
	var errs []error
	if s.Want < 0 || s.Want > wantMax {
		errs = append(errs, fmt.Errorf("step: want = %d: 0 to %d", s.Want, wantMax))
	}
	if s.Slot == "" && (s.Want > 0 || len(s.Results) > 0) {
		errs = append(errs, errors.New("step: a sweep takes nothing and has no results"))
	}
	if strings.ContainsAny(s.Node+s.Slot+s.Request, " \t\r\n\"\\{}") {
		errs = append(errs, fmt.Errorf("step: node %q, slot %q, request %q: no blanks, quotes, "+
			"braces", s.Node, s.Slot, s.Request))
	}
	for _, r := range s.Results {
		if r.Kind == jobs.KindEnd && !r.Outcome.Valid() {
			errs = append(errs, fmt.Errorf("step: job %s: outcome %q is none", r.Job, r.Outcome))
		}
	}
	return errors.Join(errs...)
}

func known(tasks []jobs.TaskID) string {
	var b strings.Builder
	for i, t := range tasks {
		if i == knownMax {
			break
		}
		b.WriteString(string(t))
		b.WriteByte(' ')
	}
	return b.String()
}

// appendResult adds what step.lua wants to know of a result. Nearly all are ends with
// nothing else to say: Redis makes a text of each word, so those have few.
func appendResult(args []any, r jobs.Result) []any {
	exit := ""
	if r.ExitCode != nil {
		exit = strconv.Itoa(*r.ExitCode)
	}
	if r.Kind == jobs.KindEnd && r.Class == "" && r.Error == "" && r.Note == "" && !r.KeepLock &&
		len(r.Output) == 0 && r.Gap.Left == 0 {
		return append(args, string(r.Job), int64(r.Token), "ended", string(r.Outcome), exit, r.Spent)
	}
	saved := r.Saved
	if r.Kind == jobs.KindEnd {
		saved = oneLine(r.Note) // what is saved is of no use to a job that has ended
	}
	return append(args, string(r.Job), int64(r.Token), string(r.Kind), string(r.Outcome),
		string(r.Class), exit, oneLine(r.Error), r.Delay.Microseconds(), int64(r.Until), r.Step,
		saved, r.Release, r.KeepLock, said(r), r.Spent)
}

// oneLine puts an error for people on one line and bounds it: it goes into JSON and into lists.
func oneLine(s string) string { return wording.OneLine(s, errorMax) }

func readReply(r reader) (jobs.Reply, error) {
	reply := jobs.Reply{Status: jobs.Status(r.text()), Now: r.micros()}
	if reply.Status == absent {
		return reply, errors.New("the zone vanished again at once")
	}
	reply.Next = r.micros()
	for n := r.int(); n > 0 && r.err == nil; n-- {
		reply.Late = append(reply.Late, jobs.ID(r.text()))
	}
	for n := r.int(); n > 0 && r.err == nil; n-- {
		g, err := readGrant(r.text(), r.text())
		if r.err == nil && err != nil {
			return reply, err
		}
		reply.Jobs = append(reply.Jobs, g)
	}
	for len(r.v) > 0 && r.err == nil {
		task, text := r.text(), r.text()
		var spec jobs.Spec
		// What cannot be read is left out: an error would be repeated with the
		// request for ever. The worker says what it misses, job by job.
		if json.Unmarshal([]byte(text), &spec) != nil {
			continue
		}
		if reply.Specs == nil {
			reply.Specs = map[jobs.TaskID]jobs.Spec{}
		}
		reply.Specs[jobs.TaskID(task)] = spec
	}
	return reply, r.err
}

// grantFields is how many tab separated parts a grant has; see step.lua.
const grantFields = 14

func readGrant(text, host string) (jobs.Grant, error) {
	parts := strings.SplitN(text, "\t", grantFields)
	if len(parts) != grantFields {
		return jobs.Grant{}, fmt.Errorf("grant has %d parts, want %d", len(parts), grantFields)
	}
	r := words{left: parts}
	g := jobs.Grant{Job: jobs.ID(r.text()), Token: jobs.Token(r.micros()), Mode: jobs.Mode(r.text()),
		Attempt: r.int(), Tries: r.int(), Probes: r.int(), Crashes: r.int(), Step: r.int(),
		Due: r.micros(), Timeout: r.duration(), Bound: r.duration(), LostNode: r.text(),
		Spent: r.text(), Saved: r.text()}
	if g.Mode != jobs.ModeLost {
		g.LostNode = ""
	}
	if r.err != nil {
		return g, fmt.Errorf("grant of %s: %w", parts[0], r.err)
	}
	if h := new(fleet.Host); host != "" && json.Unmarshal([]byte(host), h) == nil {
		g.Host = h
	}
	return g, nil
}

// words takes the parts of a text in order, as reader those of an answer: but with no
// memory for each, which was two thirds of all that a job took here.
type words struct {
	left []string
	err  error
}

func (w *words) text() string {
	word := w.left[0]
	w.left = w.left[1:]
	return word
}

func (w *words) micros() jobs.Micros {
	m, err := jobs.ParseMicros(w.text())
	if err != nil && w.err == nil {
		w.err = err
	}
	return m
}

func (w *words) int() int { return int(w.micros()) }

func (w *words) duration() time.Duration { return time.Duration(w.micros()) * time.Microsecond }

// attempts are those of some grants that hold their hosts: who only looks holds nothing.
func attempts(list []jobs.Grant) []jobs.Grant {
	looks := func(g jobs.Grant) bool { return g.Mode.Looks() }
	if !slices.ContainsFunc(list, looks) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), looks)
}

// giveUp forgets jobs that are about to be given back, before the call: if its
// answer is lost, the next connection must not say that they are in hand.
func (q *Queue) giveUp(name string, results []jobs.Result) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range results {
		if r.Kind == jobs.KindBack {
			delete(q.zones[name].held, r.Job)
		}
	}
}

// note keeps what this process holds now, and when Redis' clock was seen.
func (q *Queue) note(name string, s jobs.Step, reply jobs.Reply, sent time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	z := q.zones[name]
	z.see(reply.Now, sent)
	for _, g := range attempts(reply.Jobs) {
		z.longest = max(z.longest, g.Timeout)
	}
	if s.Slot != q.cfg.Slot {
		return // a master takes for a child, which says itself what it holds
	}
	for _, r := range s.Results {
		delete(z.held, r.Job)
	}
	for _, g := range attempts(reply.Jobs) {
		z.held[g.Job] = held{g.Token, g.Timeout, sent + g.Timeout}
	}
}

// Checkpoint asks whether the next step of a job may start. Only Go lets it,
// and only until the task's timeout counted from before the call. Asking twice
// does no harm.
func (q *Queue) Checkpoint(ctx context.Context, name string, c jobs.Checkpoint) (jobs.Verdict,
	error) {
	sent := proc.Boot()
	r, err := q.script(ctx, scripts.checkpoint, name, string(c.Job), int64(c.Token), c.Step, c.Saved)
	if err != nil {
		return "", err
	}
	v := jobs.Verdict(r.text())
	switch v {
	case jobs.Go:
		q.extend(name, c.Job, sent)
	case jobs.Stop, jobs.Stale:
	default:
		return "", fmt.Errorf("checkpoint of %s: answer %q", c.Job, v)
	}
	return v, nil
}

// extend notes that the lock of a job in hand lasts anew, from when that was asked for.
func (q *Queue) extend(name string, id jobs.ID, sent time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h, ok := q.zones[name].held[id]; ok {
		h.until = max(h.until, sent+h.timeout)
		q.zones[name].held[id] = h
	}
}

// Lose tells that a child is gone, and returns the jobs that were lost with it.
// Telling twice does no harm.
func (q *Queue) Lose(ctx context.Context, name string, l jobs.Loss) ([]jobs.ID, error) {
	if err := q.Enter(ctx, name); err != nil {
		return nil, err
	}
	r, err := q.stamped(ctx, scripts.lose, name, func(stamp string) []any {
		return []any{l.Node, l.Slot, oneLine(l.Why), stamp}
	})
	if err != nil {
		return nil, err
	}
	var out []jobs.ID
	for len(r.v) > 0 && r.err == nil {
		out = append(out, jobs.ID(r.text()))
	}
	return out, r.err
}

// Hold tells the handle of a child which jobs its master took for it, so that it
// can say after a restart of Redis that it holds them. For before the first call.
func (q *Queue) Hold(h jobs.Handover) {
	q.mu.Lock()
	defer q.mu.Unlock()
	z := &zone{held: map[jobs.ID]held{}}
	for _, g := range attempts(h.Reply.Jobs) {
		z.held[g.Job] = held{g.Token, g.Timeout, h.Sent + g.Timeout}
	}
	q.zones[h.Zone] = z
}

// Held is what Redis says the children of a node hold: slot to jobs. A slot
// without jobs is listed too: its child has not been told to be gone.
func (q *Queue) Held(ctx context.Context, name, node string) (map[string][]jobs.ID, error) {
	v, err := q.rdb.HGetAll(ctx, zoneKey(name, "hold:", node)).Result()
	if err != nil {
		return nil, q.say("held", err)
	}
	out := make(map[string][]jobs.ID, len(v))
	for slot, text := range v {
		if strings.HasPrefix(text, "- ") {
			continue // its child was lost
		}
		out[slot] = nil
		if lines := strings.SplitN(text, "\n", 5); len(lines) >= 4 {
			for i, word := range strings.Fields(lines[3]) {
				if i%2 == 0 {
					out[slot] = append(out[slot], jobs.ID(word))
				}
			}
		}
	}
	return out, nil
}
