package programs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/events"
	"muster/ingress"
	"muster/internal/proc"
	"muster/internal/wording"
	"muster/jobs/queue/inbox"
)

// Duty is the duty to run programs.
const Duty = "programs"

// Inbox takes events.
type Inbox interface {
	Take(ctx context.Context, a inbox.Arrival) (inbox.Taken, error)
}

// Needs are the things that a Runner works with.
type Needs struct {
	Sources func() *ingress.Sources // those in force; the same pointer means that nothing has changed
	Inbox   Inbox
	Log     hclog.Logger
	Now     func() time.Time
	// Pause bounds the time before a program that failed begins again.
	Pause struct{ Min, Max time.Duration }
}

// The times of programs.
const (
	lookEvery = time.Second
	pauseMin  = time.Second
	pauseMax  = 5 * time.Minute
	// calmAfter is the run after which a failure counts as the first one.
	calmAfter = time.Minute
	// awayWait is the time between two tries to store a line.
	awayWait = time.Second
	// waitMax bounds the time for which a line waits that is beyond the bounds of its source.
	waitMax = 10 * time.Second
)

// Runner runs programs for one term of its duty.
type Runner struct {
	Needs
	running map[string]run
}

// run is a program that runs, or waits to run again.
type run struct {
	source ingress.Source
	stop   context.CancelFunc
	done   chan struct{}
}

// New returns the runner of a term.
func New(n Needs) *Runner {
	if n.Pause.Min == 0 {
		n.Pause.Min, n.Pause.Max = pauseMin, pauseMax
	}
	return &Runner{Needs: n, running: map[string]run{}}
}

// Run runs the programs of the sources in force until ctx is done, and waits for their end.
func (r *Runner) Run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	defer r.follow(ctx, nil)
	var last *ingress.Sources
	for {
		if now := r.Sources(); now != last {
			r.follow(ctx, now.All())
			last = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

// follow ends the programs that are not configured as they run, and begins those that do not run.
func (r *Runner) follow(ctx context.Context, list []ingress.Source) {
	want := map[string]ingress.Source{}
	for _, s := range list {
		if s.Program != nil {
			want[s.Name] = s
		}
	}
	var ended []run
	for name, one := range r.running {
		s, there := want[name]
		if s.Line = one.source.Line; !there || !reflect.DeepEqual(s, one.source) {
			one.stop()
			ended = append(ended, one)
			delete(r.running, name)
		}
	}
	for _, one := range ended {
		<-one.done
	}
	for name, s := range want {
		if _, runs := r.running[name]; runs {
			continue
		}
		one := run{source: s, done: make(chan struct{})}
		var mine context.Context
		mine, one.stop = context.WithCancel(ctx)
		r.running[name] = one
		go func() {
			defer close(one.done)
			r.keep(mine, s)
		}()
	}
}

// keep runs a program again and again until ctx is done.
func (r *Runner) keep(ctx context.Context, s ingress.Source) {
	pause := r.Pause.Min
	for ctx.Err() == nil {
		begun := r.Now()
		err := r.once(ctx, s)
		if ctx.Err() != nil {
			return
		}
		wait := s.Program.Every
		switch {
		case err == nil:
			pause = r.Pause.Min
		case r.Now().Sub(begun) >= calmAfter:
			pause = r.Pause.Min
			fallthrough
		default:
			wait, pause = pause, min(2*pause, r.Pause.Max)
			r.Log.Error("a program that prints events has failed: it begins again", "source", s.Name,
				"in", wait, "error", err)
		}
		sleep(ctx, wait)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// once runs a program to its end.
func (r *Runner) once(ctx context.Context, s ingress.Source) error {
	bad := &sparing{now: r.Now, say: func(why string) {
		r.Log.Warn("a program prints a line that is no event", "source", s.Name, "why", why)
	}}
	said := &sparing{now: r.Now, say: func(words string) {
		r.Log.Info("a program that prints events says", "source", s.Name, "words", words)
	}}
	out := &splitter{most: ingress.LineMax, pace: pacer{ctx: ctx, now: r.Now}}
	out.line = func(line []byte) { r.line(ctx, s, line, bad) }
	out.large = func() { bad.note(fmt.Sprintf("it has more than %d bytes", ingress.LineMax)) }
	words := &splitter{most: wordsOf, pace: pacer{ctx: ctx, now: r.Now}}
	words.line = func(line []byte) { said.note(wording.OneLine(string(line), wordsOf)) }
	words.large = func() { said.note("(a line that is too long)") }
	c := s.Program.Command
	exit, err := proc.Whole{Name: c[0], Args: c[1:], Dir: "/", Env: []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"},
		Said: out, Errors: words, Events: io.Discard}.Run(ctx)
	if err == nil && exit != 0 {
		err = fmt.Errorf("it ended with exit code %d", exit)
	}
	if err == nil {
		out.end() // a last line without its end is one only if the program ended well
	}
	return err
}

// line stores the event that a line is. While it cannot be stored the program waits.
func (r *Runner) line(ctx context.Context, s ingress.Source, line []byte, bad *sparing) {
	body, ok := s.Program.Line(line)
	if !ok {
		return
	}
	d, err := s.Read(ingress.Message{Header: func(string) []string { return nil }, Body: body})
	if err != nil {
		bad.note(err.Error())
		return
	}
	if s.Program.Each {
		d.ID = ingress.IDOf(s.Name, "line", rand.Text())
	}
	a := inbox.Arrival{Event: events.Event{ID: d.ID, Source: s.Name, Kind: d.Kind,
		Customer: d.Customer, At: r.Now(), Body: body}, Class: s.Class, Bounds: s.Bounds}
	for said := false; ctx.Err() == nil; {
		_, err := r.Inbox.Take(ctx, a)
		if err == nil || ctx.Err() != nil {
			return
		}
		wait := awayWait
		var flood *inbox.Flood
		if errors.As(err, &flood) {
			wait = min(flood.Wait, waitMax)
		}
		if !said {
			said = true
			r.Log.Warn("a program that prints events waits", "source", s.Name, "error", err)
		}
		sleep(ctx, wait)
	}
}
