package watch

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

const (
	// WaitFor bounds the time after which the server answers a question about a task.
	WaitFor = 25 * time.Second
	// PaceMost is the pause between two questions; jobs of a big task end all
	// the time, and no eye needs more.
	PaceMost = 250 * time.Millisecond
	PaceStep = 50 * time.Millisecond // less at first: a small task is over soon
	drawTick = 250 * time.Millisecond
)

// Follow follows a task, of which t is the last known state, until it ends.
func Follow(ctx context.Context, s *cli.Session, t jobs.TaskInfo) (jobs.TaskInfo, error) {
	d := newDisplay(s.Screen)
	end, err := watchTask(ctx, s, t, d)
	d.close()
	if err != nil {
		err = Left(ctx, t.Task, err)
	}
	return end, err
}

// Left returns the error of somebody who no longer looks at a task, which runs on: they were
// interrupted, or the server is not reached.
func Left(ctx context.Context, id jobs.TaskID, err error) error {
	switch {
	case ctx.Err() != nil:
		return cli.Exit(cli.ExitInterrupted, fmt.Errorf("interrupted: %s", runsOn(id)))
	case cli.Passing(err):
		return cli.Exit(cli.ExitUnreachable, fmt.Errorf("%w\n%s", err, runsOn(id)))
	}
	return err
}

// runsOn says that the task continues without the person who looked.
func runsOn(id jobs.TaskID) string {
	return fmt.Sprintf("task %[1]s runs on: follow it with `muster task %[1]s --wait`, "+
		"end it with `muster cancel %[1]s`", id)
}

// news is the latest knowledge about a task.
type news struct {
	task   jobs.TaskInfo
	err    error
	stands string // the order that stops it; empty: none, as far as is known
	last   bool   // no further question will be asked
}

// watchTask shows a task until it ends, and returns its last state.
func watchTask(ctx context.Context, s *cli.Session, t jobs.TaskInfo, d display) (jobs.TaskInfo,
	error) {
	if Over(t) {
		return t, nil
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heard := make(chan news)
	asking.Go(func() { askFor(ctx, s, t, heard) })

	ticks := time.NewTicker(drawTick)
	defer ticks.Stop()
	p, at, m := Progress{Task: t}, s.Now(), meter{}
	m.add(at, p.done())
	for {
		now := s.Now()
		p.rate, p.quiet = m.rate(now), m.quiet(now)
		p.elapsed = cli.Seconds(p.Task.Seconds) + now.Sub(at)
		d.show(p)
		select {
		case <-ctx.Done():
			return p.Task, ctx.Err()
		case <-ticks.C:
		case n := <-heard:
			if n.last {
				return n.task, n.err
			}
			p.trouble = ""
			if n.err != nil {
				p.trouble = cli.TroubleWords(n.err)
				continue
			}
			p.Task, p.stands, at = n.task, n.stands, s.Now()
			m.add(at, p.done())
		}
	}
}

// askFor asks for a task repeatedly and passes on what it learns, until the task ended, nothing
// more can be learned, or ctx is done.
func askFor(ctx context.Context, s *cli.Session, t jobs.TaskInfo, heard chan<- news) {
	tell := func(n news) {
		select {
		case heard <- n:
		case <-ctx.Done():
		}
	}
	watch := standstill{looked: s.Now(), words: standingWords(ctx, s.Client, t)}
	if watch.words != "" {
		tell(news{task: t, stands: watch.words})
	}
	for pace := PaceStep; ; pace = min(pace+PaceStep, PaceMost) {
		// A server that answers at once must not be asked without a pause either.
		if !cli.Sleep(ctx, pace) {
			return
		}
		seen := t.Outcomes.Sum()
		next, err := cli.Again(ctx, s.Patience, func() (jobs.TaskInfo, error) {
			return s.Task(ctx, t.Task, watch.patience(), seen)
		}, func(err error, _ time.Duration) { tell(news{task: t, err: err}) })
		if err != nil {
			tell(news{task: t, err: err, last: true})
			return
		}
		t = next
		ended := Over(t)
		switch {
		case ended || t.Running > 0 || t.Outcomes.Sum() != seen:
			watch.words, watch.whole = "", true
		case watch.due(s.Now()):
			watch = standstill{s.Now(), standstillWords(ctx, s.Client, t), true}
		}
		tell(news{task: t, stands: watch.words, last: ended})
		if ended {
			return
		}
	}
}

// Over reports whether nothing more happens in a task, unless a person orders it.
func Over(t jobs.TaskInfo) bool {
	return t.State == jobs.TaskEnded || t.Forgotten ||
		t.State == jobs.TaskStopped && t.Rollout != nil && t.Rollout.Begun == 0
}

// standstillEvery is the time between two questions why nothing of a task starts; it is rarer than
// the server's answers that nothing has changed.
const standstillEvery = 20 * time.Second

// standstill says why nothing of a task started at the last question.
type standstill struct {
	looked time.Time
	words  string // empty: no reason is known
	whole  bool   // the question also covered what jobs wait for
}

// standstillFirst is the time of the first such question about jobs: the person has just submitted.
const standstillFirst = 4 * time.Second

// patience returns the time after which the server must answer the next question.
func (s standstill) patience() time.Duration {
	if s.whole {
		return WaitFor
	}
	return standstillFirst
}

func (s standstill) due(now time.Time) bool {
	every := standstillEvery
	if !s.whole {
		every = standstillFirst
	}
	return now.Sub(s.looked) >= every
}

// standingWords names the orders that stop a task, and says whether it waits for people.
func standingWords(ctx context.Context, c *cli.Client, t jobs.TaskInfo) string {
	words := Standing(ctx, c, t.Task)
	if t.Gates {
		// If the question fails now, a later one follows.
		if l, err := Gates(ctx, c, url.Values{"task": {string(t.Task)}}); err == nil &&
			unanswered(l) > 0 {
			words = append(words, atGates(unanswered(l), t.Task))
		}
	}
	return strings.Join(words, "; ")
}

// standstillWords also names resources of others that jobs wait for, for instance a frozen group
// that only a person clears. That costs more, so it is asked only after nothing has happened for a
// while.
func standstillWords(ctx context.Context, c *cli.Client, t jobs.TaskInfo) string {
	var words []string
	if orders := standingWords(ctx, c, t); orders != "" {
		words = append(words, orders)
	}
	l, err := Lacks(ctx, c, t.Task)
	if err != nil {
		l = api.LackList{} // they are no part of the answer
	}
	for _, x := range l.Waits {
		if !x.Order { // orders are listed above
			words = append(words, fmt.Sprintf("%s: %s", cli.Cell(x.Hosts), cli.Cell(x.Why)))
		}
	}
	for _, a := range l.Awaits {
		words = append(words, fmt.Sprintf("%s: %s", cmp.Or(cli.Cell(a.Hosts), "other hosts"),
			awaitedWords(a)))
	}
	return strings.Join(words, "; ")
}

// Lacks returns what jobs of a task wait for.
func Lacks(ctx context.Context, c *cli.Client, id jobs.TaskID) (l api.LackList, err error) {
	err = c.Get(ctx, "/v1/tasks/"+url.PathEscape(string(id))+"/waits", nil, &l)
	return l, err
}

// ExitOf returns the exit code of a task that ended, or was stopped.
func ExitOf(t jobs.TaskInfo) int {
	c := t.Outcomes
	switch {
	case c.Sum() == t.Total && c[jobs.Succeeded] == t.Total:
		return cli.ExitOK
	case t.Cancelled != "" || c[jobs.Cancelled]+c[jobs.Superseded]+c[jobs.Skipped] > 0:
		return cli.ExitStopped
	case t.State == jobs.TaskStopped:
		return cli.ExitStopped
	}
	return cli.ExitNotAll
}
