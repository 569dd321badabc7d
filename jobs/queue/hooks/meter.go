package hooks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Result says how calls of Redis went.
type Result string

// The results.
const (
	OK      Result = "ok"
	Refused Result = "refused" // Redis has answered with an error
	Broken  Result = "broken"  // no answer came, so nobody knows whether Redis has carried it out
)

// Results lists all results.
func Results() []Result { return []Result{OK, Refused, Broken} }

// Bounds returns the upper bounds of the buckets of times, in seconds.
func Bounds() []float64 { return []float64{.001, .003, .01, .03, .1, .3, 1, 3} }

// A Call counts the calls of one script, of one command, or of pipelines.
type Call struct {
	Name    string
	Results map[Result]uint64
	Timed   uint64   // calls whose time was taken: those that do not wait for data
	Seconds float64  // their sum
	Buckets []uint64 // of the timed ones, those that took at most each of Bounds
}

// callsMax bounds the names that a meter tells apart; what comes later is counted as other.
const callsMax = 100

// A Meter counts calls. Its zero value is ready.
type Meter struct {
	mu    sync.Mutex
	calls map[string]*Call
}

// named is the key of a context under which the name of a script is.
type named struct{}

// Named returns a context for calls of one script, which has hashes where commands have names.
func Named(ctx context.Context, script string) context.Context {
	return context.WithValue(ctx, named{}, script)
}

// Calls returns what was counted, by name.
func (m *Meter) Calls() []Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]Call, 0, len(m.calls))
	for _, c := range m.calls {
		one := *c
		one.Results, one.Buckets = map[Result]uint64{}, slices.Clone(c.Buckets)
		for r, n := range c.Results {
			one.Results[r] = n
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Call) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Hook returns the hook that counts the calls of a client.
func (m *Meter) Hook() redis.Hook { return metering{m} }

type metering struct{ to *Meter }

// DialHook implements redis.Hook.
func (metering) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (m metering) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmd)
		if !redis.HasErrorPrefix(err, "NOSCRIPT") { // the caller sends the whole script then
			m.to.note(nameOf(ctx, cmd.Name()), time.Since(begun), waits(cmd), err)
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (m metering) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmds)
		m.to.note(nameOf(ctx, "pipeline"), time.Since(begun), slices.ContainsFunc(cmds, waits), err)
		return err
	}
}

func nameOf(ctx context.Context, command string) string {
	if script, ok := ctx.Value(named{}).(string); ok {
		return script
	}
	return command
}

// waits reports whether a command waits for data, so that its time says nothing about Redis.
func waits(cmd redis.Cmder) bool {
	switch cmd.Name() {
	case "blpop", "brpop", "blmove", "bzpopmin", "wait", "waitaof":
		return true
	case "xread", "xreadgroup":
		return slices.ContainsFunc(cmd.Args(), func(a any) bool { return a == "block" })
	}
	return false
}

func (m *Meter) note(name string, took time.Duration, waits bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls = map[string]*Call{}
	}
	if m.calls[name] == nil && len(m.calls) >= callsMax {
		name = "other"
	}
	c := m.calls[name]
	if c == nil {
		c = &Call{Name: name, Results: map[Result]uint64{}, Buckets: make([]uint64, len(Bounds()))}
		m.calls[name] = c
	}
	c.Results[resultOf(err)]++
	if waits {
		return
	}
	c.Timed++
	c.Seconds += took.Seconds()
	for i, bound := range Bounds() {
		if took.Seconds() <= bound {
			c.Buckets[i]++
		}
	}
}

func resultOf(err error) Result {
	var said redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return OK
	case errors.As(err, &said):
		return Refused
	}
	return Broken
}
