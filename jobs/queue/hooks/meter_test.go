package hooks_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/hooks"
	"muster/testkit/redistest"
)

// Each call is counted under its script or command with how it went, and waiting is no slowness.
func TestCallsAreCountedByNameAndResult(t *testing.T) {
	t.Parallel()
	server := redistest.StartServer(t)
	o, err := redis.ParseURL(server.Config().URL)
	if err != nil {
		t.Fatal(err)
	}
	o.MaxRetries, o.DialerRetries, o.Protocol, o.DisableIdentity = -1, 1, 2, true
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	m := &hooks.Meter{}
	c.AddHook(m.Hook())
	c.AddHook(hooks.WorstError{})
	ctx := t.Context()
	c.Set(ctx, "k", "v", 0)
	c.Get(ctx, "absent")
	c.HGet(ctx, "k", "f")
	script := redis.NewScript("return 1")
	script.Run(hooks.Named(ctx, "step"), c, nil)
	script.Run(hooks.Named(ctx, "step"), c, nil)
	c.XRead(ctx, &redis.XReadArgs{Streams: []string{"s", "$"}, Block: time.Millisecond})
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Get(ctx, "absent")
		p.HGet(ctx, "k", "f")
		return nil
	})
	if err == nil {
		t.Error("a pipeline with a mistake says nothing")
	}
	server.Kill()
	c.Get(ctx, "absent")
	type counted struct{ ok, refused, broken, timed uint64 }
	want := map[string]counted{"set": {ok: 1, timed: 1}, "get": {ok: 1, broken: 1, timed: 2},
		"hget": {refused: 1, timed: 1}, "step": {ok: 2, timed: 2}, "xread": {ok: 1},
		"pipeline": {refused: 1, timed: 1}}
	for _, call := range m.Calls() {
		if call.Name == "hello" { // of the connections
			continue
		}
		is := counted{call.Results[hooks.OK], call.Results[hooks.Refused], call.Results[hooks.Broken], call.Timed}
		if is != want[call.Name] {
			t.Errorf("%s: %+v, want %+v", call.Name, is, want[call.Name])
		}
		if last := call.Buckets[len(call.Buckets)-1]; last > call.Timed || call.Timed > 0 && call.Seconds <= 0 {
			t.Errorf("%s: %+v", call.Name, call)
		}
		delete(want, call.Name)
	}
	if len(want) > 0 {
		t.Errorf("not counted: %v", want)
	}
}

// Names that somebody invents make no more series than a meter allows.
func TestNamesOfCallsAreBounded(t *testing.T) {
	t.Parallel()
	m := &hooks.Meter{}
	call := m.Hook().ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	for i := range 200 {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26))
		if err := call(t.Context(), redis.NewCmd(t.Context(), name)); err != nil {
			t.Fatal(err)
		}
	}
	list := m.Calls()
	if len(list) != 101 {
		t.Errorf("%d names", len(list))
	}
	for _, c := range list {
		if c.Name == "other" && c.Results[hooks.OK] != 100 {
			t.Errorf("others: %+v", c)
		}
	}
}
