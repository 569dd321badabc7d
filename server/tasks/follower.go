package tasks

import (
	"context"
	"slices"
	"strings"
	"time"

	"muster/jobs"
	"muster/jobs/queue/read"
	"muster/server/fold"
	"muster/server/web"
)

// An ear takes the news of a follower. Its errors end the following.
type ear interface {
	// said takes the output of the host of a job, in order.
	said(id jobs.ID, o jobs.Output) error

	// ended takes the end of a job, once, after all output of its host.
	ended(j jobs.JobInfo) error

	// rest ends a round: the ear has all news up to the places at.
	rest(ctx context.Context, t jobs.TaskInfo, at positions) error
}

// A follower follows a task. It learns the ends of jobs from the events of the zones. If these lack
// one, for whatever reason, it finds that end when the task has ended.
type follower struct {
	reads Reads
	task  jobs.TaskInfo
	ear   ear
	deaf  bool // hears of a job only when it has ended

	at     positions            // of the events
	behind bool                 // there are more events than were read
	since  time.Time            // what ended before was told already
	atWork map[jobs.ID]*hearing // jobs whose hosts may say something
	done   map[string]bool      // hosts whose jobs have ended
}

// hearing is the place up to which the output of a job was read.
type hearing struct {
	zone  string // empty: not known yet
	heard read.Heard
}

// resumeOverlap is the time for which a client that returns gets the news again: the instants in
// jobs and those of events come from two clocks.
const resumeOverlap = time.Minute

func newFollower(r Reads, t jobs.TaskInfo, at positions, e ear) *follower {
	f := &follower{reads: r, task: t, ear: e, at: at, atWork: map[jobs.ID]*hearing{},
		done: map[string]bool{}}
	if at == nil {
		f.at = positions{}
		return f
	}
	for _, id := range at {
		if since := timeOf(id).Add(-resumeOverlap); f.since.IsZero() || since.Before(f.since) {
			f.since = since
		}
	}
	return f
}

// begin passes on all that is known.
func (f *follower) begin(ctx context.Context) error {
	// The place in the events comes first, so that nothing is missed in between.
	for _, zone := range f.task.Zones {
		if f.at[zone] != "" {
			continue
		}
		_, last, err := f.reads.Events.Events(ctx, zone, "$", 1, 0)
		if err != nil {
			return err
		}
		f.at[zone] = last
	}
	if err := f.scan(ctx); err != nil {
		return err
	}
	if err := f.listen(ctx); err != nil {
		return err
	}
	return f.ear.rest(ctx, f.task, f.at)
}

// goOn passes on the news since the last round.
func (f *follower) goOn(ctx context.Context) error {
	t, err := f.reads.Tasks.Task(ctx, f.task.Task)
	if err != nil {
		return err
	}
	f.behind = false
	for _, zone := range f.task.Zones {
		if err := f.happened(ctx, zone); err != nil {
			return err
		}
	}
	if err := f.listen(ctx); err != nil {
		return err
	}
	if t.State == jobs.TaskEnded {
		if err := f.scan(ctx); err != nil {
			return err
		}
	}
	f.task = t
	return f.ear.rest(ctx, f.task, f.at)
}

// over reports whether the task has ended.
func (f *follower) over() bool { return f.task.State == jobs.TaskEnded }

// scan goes through all jobs of the task.
func (f *follower) scan(ctx context.Context) error {
	return f.reads.Jobs.EachJob(ctx, f.task.Task, 0, web.JobsMax,
		func(chunk []jobs.JobInfo) error {
			var ended []jobs.JobInfo
			for _, j := range chunk {
				switch {
				case j.State != jobs.Ended:
					if j.Attempt > 0 {
						f.attend(j.ID, "")
					}
				case j.Finished.Before(f.since):
					f.done[j.Host] = true
				default:
					ended = append(ended, j)
				}
			}
			return f.end(ctx, ended)
		})
}

// attend listens to a job from now on.
func (f *follower) attend(id jobs.ID, zone string) *hearing {
	h := f.atWork[id]
	if h == nil {
		h = &hearing{}
		f.atWork[id] = h
	}
	if zone != "" {
		h.zone = zone
	}
	return h
}

// happened passes on the events of a zone.
func (f *follower) happened(ctx context.Context, zone string) error {
	prefix := string(f.task.Task) + ":"
	for range streamPages {
		list, last, err := f.reads.Events.Events(ctx, zone, f.at[zone], streamPage, 0)
		if err != nil {
			return err
		}
		var ended []jobs.JobInfo
		for _, h := range list {
			if !strings.HasPrefix(h.Object, prefix) {
				continue
			}
			switch h.Event {
			case "take":
				f.attend(jobs.ID(h.Object), zone)
			case "end":
				f.attend(jobs.ID(h.Object), zone)
				ended = append(ended, endOf(h))
			}
		}
		if err := f.end(ctx, ended); err != nil {
			return err
		}
		f.at[zone] = last
		if len(list) < streamPage {
			return nil
		}
	}
	f.behind = true
	return nil
}

// endOf reads the end of a job from an event.
func endOf(h jobs.Happening) jobs.JobInfo {
	id := jobs.ID(h.Object)
	j := jobs.JobInfo{ID: id, Host: id.Host(), State: jobs.Ended, Finished: h.At}
	detail, _ := h.Detail.(map[string]any)
	outcome, _ := detail["outcome"].(string)
	j.Outcome = jobs.Outcome(outcome)
	j.Error, _ = detail["error"].(string)
	if n, ok := detail["exit"].(float64); ok {
		code := int(n)
		j.ExitCode = &code
	}
	return j
}

// end passes on the output and the ends of jobs, as far as the ear does not have them.
func (f *follower) end(ctx context.Context, list []jobs.JobInfo) error {
	list = slices.DeleteFunc(list, func(j jobs.JobInfo) bool {
		told := f.done[j.Host]
		if told {
			delete(f.atWork, j.ID)
		}
		return told
	})
	for part := range slices.Chunk(list, fold.OutputsMax) {
		for _, id := range ids(part) {
			f.attend(id, "")
		}
		said, lost := f.hear(ctx, ids(part))
		for _, j := range part {
			if err := f.tell(j.ID, said); err != nil {
				return err
			}
			if lost != nil {
				continue // there may be more
			}
			if err := f.ear.ended(j); err != nil {
				return err
			}
			f.done[j.Host] = true
			delete(f.atWork, j.ID)
		}
		if lost != nil {
			return lost
		}
	}
	return nil
}

// tell passes on the output of a job, if there is any.
func (f *follower) tell(id jobs.ID, said map[jobs.ID]jobs.Output) error {
	if len(said[id]) == 0 {
		return nil
	}
	return f.ear.said(id, said[id])
}

// listen passes on the new output of running jobs.
func (f *follower) listen(ctx context.Context) error {
	if f.deaf {
		return nil
	}
	var list []jobs.ID
	for id := range f.atWork {
		list = append(list, id)
	}
	slices.Sort(list)
	for part := range slices.Chunk(list, fold.OutputsMax) {
		said, lost := f.hear(ctx, part)
		for _, id := range part {
			if err := f.tell(id, said); err != nil {
				return err
			}
		}
		if lost != nil {
			return lost
		}
	}
	return nil
}

// hear reads the new output of some jobs. Beside an error it returns the part that it has read,
// which it does not read again. It looks for a job of unknown zone in all of them: a look at a zone
// without it costs next to nothing.
func (f *follower) hear(ctx context.Context, list []jobs.ID) (map[jobs.ID]jobs.Output, error) {
	all := map[jobs.ID]jobs.Output{}
	for _, zone := range f.task.Zones {
		here := map[jobs.ID]*read.Heard{}
		for _, id := range list {
			if h := f.atWork[id]; h.zone == "" || h.zone == zone {
				here[id] = &h.heard
			}
		}
		said, err := f.reads.Outputs.Listen(ctx, zone, here)
		if err != nil {
			return all, err
		}
		for id, o := range said {
			all[id], f.atWork[id].zone = o, zone
		}
	}
	return all, nil
}
