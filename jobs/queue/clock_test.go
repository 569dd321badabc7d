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
		v, err := scripts.step.run(t.Context(), rdb, "default", "n1", "1", request(t), 1,
			jobs.MicrosOf(expected).String(), "", "0", 0).Slice()
		if err != nil {
			t.Fatal(err)
		}
		return reader{v: v}
	}
	// Forward: for as long as locks may have ended early. Nobody called for an hour.
	hourAgo := jobs.MicrosOf(time.Now().Add(-time.Hour)).String()
	m.HSet("muster:{default}:zone", "high", hourAgo, "token", hourAgo)
	reply, err := readReply(take(time.Now().Add(-2 * time.Minute)))
	if froze := reply.Next.Sub(reply.Now).Round(time.Second); err != nil ||
		reply.Status != jobs.StatusFrozen || froze != 2*time.Minute {
		t.Errorf("a jump ahead: %+v for %s, %v", reply, froze, err)
	}
	// It is the caller that slept: others called meanwhile.
	m.HSet("muster:{default}:zone", "frozen", "0", "high", jobs.MicrosOf(time.Now()).String())
	if reply, err := readReply(take(time.Now().Add(-2 * time.Minute))); err != nil ||
		len(reply.Jobs) != 1 {
		t.Errorf("a caller that slept: %+v, %v", reply, err)
	}
	// Back: what was far ahead is put right, and is not waited for.
	m.HSet("muster:{default}:zone", "high", jobs.MicrosOf(time.Now().Add(720*time.Hour)).String())
	reply, err = readReply(take(time.Now().Add(2 * time.Minute)))
	if err != nil || reply.Status != jobs.StatusFrozen || reply.Next.Sub(reply.Now) > 3*time.Minute ||
		time.Since(reply.Now.Time()).Abs() > time.Minute {
		t.Errorf("a jump back: %+v, %v", reply, err)
	}
	if err := q.Submit(t.Context(), task2(), map[string][]string{"default": {"fw2"}}, nil); err != nil {
		t.Fatal(err)
	}
	m.HSet("muster:{default}:zone", "frozen", "0")
	if reply, err := readReply(take(time.Now().Add(2 * time.Second))); err != nil || len(reply.Jobs) != 1 {
		t.Errorf("off by two seconds: %+v, %v", reply, err)
	}
}

func task2() jobs.Task {
	return jobs.Task{ID: jobs.NewTaskID(time.Now(), 2), Total: 1,
		Spec: jobs.Spec{Timeout: 10 * time.Minute, Expire: time.Hour}}
}

// request is a request id of this test alone.
func request(t *testing.T) string { return t.Name() + time.Now().Format("150405.000000000") }
