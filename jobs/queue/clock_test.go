package queue

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// A jump of Redis' clock ends all locks at once. The call that sees it must not
// take anything.
func TestAJumpOfTheClockFreezesTheZone(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	q, err := OpenLazy(Config{URL: "redis://" + m.Addr(), Embedded: true, Timeout: time.Second, Pool: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	task := jobs.Task{ID: jobs.NewTaskID(time.Now(), 1), Total: 1,
		Spec: jobs.Spec{Timeout: 10 * time.Minute, Expire: time.Hour}}
	hosts := map[string][]string{"default": {"fw1"}}
	if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), Protocol: 2})
	t.Cleanup(func() { rdb.Close() })
	take := func(expected time.Time) reader {
		t.Helper()
		v, err := scripts.step.run(t.Context(), rdb, "default", "n1", "1", rand(t), 1,
			jobs.MicrosOf(expected).String(), "", 0).Slice()
		if err != nil {
			t.Fatal(err)
		}
		return reader{v: v}
	}
	for _, off := range []time.Duration{-2 * time.Minute, 2 * time.Minute} {
		m.HSet("muster:{default}:zone", "frozen", "0")
		reply, err := readReply(take(time.Now().Add(off)))
		if err != nil || reply.Status != jobs.StatusFrozen ||
			reply.Next.Sub(reply.Now) != task.Spec.Timeout {
			t.Errorf("off by %s: %+v, %v", off, reply, err)
		}
	}
	m.HSet("muster:{default}:zone", "frozen", "0")
	if reply, err := readReply(take(time.Now().Add(2 * time.Second))); err != nil || len(reply.Jobs) != 1 {
		t.Errorf("off by two seconds: %+v, %v", reply, err)
	}
}

// rand is a request id of this test alone.
func rand(t *testing.T) string { return t.Name() + time.Now().Format("150405.000000000") }
