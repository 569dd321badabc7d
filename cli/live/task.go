package live

import (
	"context"
	"encoding/json"
	"time"

	"muster/cli"
	"muster/cli/watch"
	"muster/jobs"
)

// Facts has all that the page of a task shows, except the output of its hosts.
type Facts struct {
	Task    jobs.TaskInfo `json:"task"`
	AtGates int           `json:"at_gates"` // jobs that wait for a person
	Waits   []jobs.Lack   `json:"waits"`    // reasons why others of them wait
	// Awaits lists the windows and freezes that they wait for.
	Awaits []jobs.Appointment `json:"awaits"`
	// Stands lists the orders and lacks that keep its jobs from starting.
	Stands []string `json:"stands"`
}

const (
	pauseLeast = time.Second // between two looks at what changes
	share      = 20          // looks take at most 1/20 of the time
	pauseMost  = 30 * time.Second
)

// Task shows a task until it ends. Its exit code is that of the task.
func Task(ctx context.Context, s *cli.Session, id jobs.TaskID) error {
	return show(ctx, s, id, pauseLeast)
}

// show shows a task, and looks at it after a pause at the earliest.
func show(ctx context.Context, s *cli.Session, id jobs.TaskID, pause time.Duration) error {
	first, err := watch.FirstNews(ctx, s, id)
	if err != nil {
		return err
	}
	l := &look{s: s, pause: pause, last: Facts{Task: first}}
	err = l.follow(ctx)
	switch {
	case err != nil:
		return watch.Left(ctx, id, err)
	case s.JSON:
		return cli.ExitWith(watch.ExitOf(l.last.Task))
	}
	return watch.Conclude(ctx, s, l.last.Task)
}

// A look keeps what was shown of a task.
type look struct {
	s     *cli.Session
	pause time.Duration // between two looks at least
	last  Facts
	said  string // the last facts, as they were said
}

// follow looks at the task and shows what has changed, until it has ended.
func (l *look) follow(ctx context.Context) error {
	for {
		begun := l.s.Now()
		now, err := cli.Again(ctx, l.s.Patience, func() (Facts, error) {
			return factsOf(ctx, l.s, l.last.Task.Task)
		}, func(err error, _ time.Duration) { l.s.Say("%s", cli.TroubleWords(err)) })
		if err != nil {
			return err
		}
		l.last = now
		if err := l.show(); err != nil || watch.Over(now.Task) {
			return err
		}
		pause := max(l.pause, min(share*l.s.Now().Sub(begun), pauseMost))
		if !cli.Sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// factsOf reads the facts of a task.
func factsOf(ctx context.Context, s *cli.Session, id jobs.TaskID) (Facts, error) {
	sum, err := watch.Summary(ctx, s.Client, id, excerpt)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{sum.Task, sum.AtGates, cli.Filled(sum.Waits), cli.Filled(sum.Awaits), []string{}}
	if !watch.Over(sum.Task) && sum.Task.Running == 0 {
		f.Stands = cli.Filled(watch.Standing(ctx, s.Client, id))
	}
	return f, nil
}

// excerpt is the smallest part of each output for which a summary can be asked: none of it is shown
// while the task runs.
const excerpt = 1 // byte

// still returns the facts without what changes by itself as time passes.
func (f Facts) still() (string, error) {
	f.Task.Seconds = 0
	text, err := json.Marshal(f)
	return string(text), err
}

// show shows the facts, unless they are as they were.
func (l *look) show() error {
	text, err := l.last.still()
	if err != nil {
		return err
	}
	same := text == l.said
	l.said = text
	switch {
	case l.s.JSON && !same:
		line, err := cli.Encode(l.last, "")
		if err != nil {
			return err
		}
		return l.s.Write(line)
	case l.s.JSON || same && !l.s.OutTerm:
		return nil
	case l.s.OutTerm:
		return l.s.Write(cli.EraseScreen + picture(l.s.Screen, l.last))
	}
	return l.s.Write(cli.Moment(jobs.Time{Time: l.s.Now()}) + "  " + line(l.last) + "\n")
}
