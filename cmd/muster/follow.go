package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"muster/api"
	"muster/jobs"
)

const (
	// waitFor is how long the server may keep a question about a task.
	waitFor = 25 * time.Second
	// paceMost is the pause between two questions; jobs of a big task end all
	// the time, and no eye needs more.
	paceMost = 250 * time.Millisecond
	paceStep = 50 * time.Millisecond // less at first: a small task is over at once
	drawTick = 250 * time.Millisecond
)

// follow follows a task, of which t was the last news, until it ended.
func (s *session) follow(ctx context.Context, t jobs.TaskInfo) (jobs.TaskInfo, error) {
	d := s.newDisplay()
	end, err := s.watch(ctx, t, d)
	d.close()
	switch {
	case err == nil:
		return end, nil
	case ctx.Err() != nil:
		return end, exit(exitInterrupted, fmt.Errorf("interrupted: %s", runsOn(t.Task)))
	case passing(err):
		return end, exit(exitUnreachable, fmt.Errorf("%w\n%s", err, runsOn(t.Task)))
	}
	return end, err
}

// runsOn says what goes on without the one who looked.
func runsOn(id jobs.TaskID) string {
	return fmt.Sprintf("task %[1]s runs on: follow it with `muster task %[1]s --wait`, "+
		"end it with `muster cancel %[1]s`", id)
}

// news is what was heard of a task.
type news struct {
	task   jobs.TaskInfo
	err    error
	stands string // the order by which nothing of it starts; empty: none, as far as is known
	last   bool   // nothing more will be asked
}

// watch shows a task until it ended, and returns what it came to.
func (s *session) watch(ctx context.Context, t jobs.TaskInfo, d display) (jobs.TaskInfo, error) {
	if over(t) {
		return t, nil
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heard := make(chan news)
	asking.Go(func() { s.ask(ctx, t, heard) })

	ticks := time.NewTicker(drawTick)
	defer ticks.Stop()
	p, at, m := progress{task: t}, s.now(), meter{}
	m.add(at, p.done())
	for {
		now := s.now()
		p.rate, p.quiet = m.rate(now), m.quiet(now)
		p.elapsed = seconds(p.task.Seconds) + now.Sub(at)
		d.show(p)
		select {
		case <-ctx.Done():
			return p.task, ctx.Err()
		case <-ticks.C:
		case n := <-heard:
			if n.last {
				return n.task, n.err
			}
			p.trouble = ""
			if n.err != nil {
				p.trouble = troubleWords(n.err)
				continue
			}
			p.task, p.stands, at = n.task, n.stands, s.now()
			m.add(at, p.done())
		}
	}
}

func troubleWords(err error) string {
	var no *refusal
	if errors.As(err, &no) {
		return "the server has trouble, trying again: " + no.words
	}
	return "the server does not answer, trying again"
}

// ask asks for a task again and again and tells what it heard, until the task
// ended, nothing more can be learnt, or ctx is done.
func (s *session) ask(ctx context.Context, t jobs.TaskInfo, heard chan<- news) {
	tell := func(n news) {
		select {
		case heard <- n:
		case <-ctx.Done():
		}
	}
	watch := standstill{looked: s.now(), words: s.standingWords(ctx, t)}
	if watch.words != "" {
		tell(news{task: t, stands: watch.words})
	}
	for pace := paceStep; ; pace = min(pace+paceStep, paceMost) {
		// A server that does not wait must not be asked without a pause either.
		if !sleep(ctx, pace) {
			return
		}
		seen := t.Outcomes.Sum()
		next, err := again(ctx, s.patience, func() (jobs.TaskInfo, error) {
			return s.task(ctx, t.Task, watch.patience(), seen)
		}, func(err error, _ time.Duration) { tell(news{task: t, err: err}) })
		if err != nil {
			tell(news{task: t, err: err, last: true})
			return
		}
		t = next
		ended := over(t)
		switch {
		case ended || t.Running > 0 || t.Outcomes.Sum() != seen:
			watch.words, watch.whole = "", true
		case watch.due(s.now()):
			watch = standstill{s.now(), s.standstillWords(ctx, t), true}
		}
		tell(news{task: t, stands: watch.words, last: ended})
		if ended {
			return
		}
	}
}

// over tells whether nothing more happens in a task, unless a person says so.
func over(t jobs.TaskInfo) bool {
	return t.State == jobs.TaskEnded || t.Forgotten ||
		t.State == jobs.TaskStopped && t.Rollout != nil && t.Rollout.Begun == 0
}

// standstillEvery is how often it is asked why nothing of a task starts; less
// often than a server answers that nothing has changed.
const standstillEvery = 20 * time.Second

// standstill is why nothing of a task started when it was last asked.
type standstill struct {
	looked time.Time
	words  string // empty: nothing keeps it, as far as is known
	whole  bool   // jobs were asked what they wait for, beside orders
}

// standstillFirst is after how long jobs are asked first: who has just submitted looks on.
const standstillFirst = 4 * time.Second

// patience is how long the server may keep the next question.
func (s standstill) patience() time.Duration {
	if s.whole {
		return waitFor
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

// standingWords says which orders keep a task, and whether it waits for people.
func (s *session) standingWords(ctx context.Context, t jobs.TaskInfo) string {
	words := s.standing(ctx, t.Task)
	if t.Gates {
		// Who cannot be asked now is asked again.
		if l, err := s.gates(ctx, url.Values{"task": {string(t.Task)}}); err == nil && unanswered(l) > 0 {
			words = append(words, atGates(unanswered(l), t.Task))
		}
	}
	return strings.Join(words, "; ")
}

// standstillWords says also what jobs wait for that others have, or have left behind: a
// frozen group, say, which only a person clears. It costs more, so it is asked once nothing
// has happened for a while.
func (s *session) standstillWords(ctx context.Context, t jobs.TaskInfo) string {
	var words []string
	if orders := s.standingWords(ctx, t); orders != "" {
		words = append(words, orders)
	}
	l, err := s.lacks(ctx, t.Task)
	if err != nil {
		l = api.LackList{} // it is no part of the answer
	}
	for _, x := range l.Waits {
		if !x.Order { // those stand above
			words = append(words, fmt.Sprintf("%s: %s", cell(x.Hosts), cell(x.Why)))
		}
	}
	for _, a := range l.Awaits {
		words = append(words, fmt.Sprintf("%s: %s", cmp.Or(cell(a.Hosts), "other hosts"),
			awaitedWords(a)))
	}
	return strings.Join(words, "; ")
}

// lacks is what jobs of a task wait for.
func (c *client) lacks(ctx context.Context, id jobs.TaskID) (l api.LackList, err error) {
	err = c.get(ctx, "/v1/tasks/"+url.PathEscape(string(id))+"/waits", nil, &l)
	return l, err
}

// sleep waits; it tells whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// exitOf is the exit code of a task that ended, or was stopped.
func exitOf(t jobs.TaskInfo) int {
	c := t.Outcomes
	switch {
	case c.Sum() == t.Total && c[jobs.Succeeded] == t.Total:
		return exitOK
	case t.Cancelled != "" || c[jobs.Cancelled]+c[jobs.Superseded]+c[jobs.Skipped] > 0:
		return exitStopped
	case t.State == jobs.TaskStopped:
		return exitStopped
	}
	return exitNotAll
}
