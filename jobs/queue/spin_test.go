package queue_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// scriptCalls returns how many calls of scripts a server has answered.
func scriptCalls(t *testing.T, s *redistest.Server) int {
	t.Helper()
	info, err := raw(t, s.Addr).Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, m := range regexp.MustCompile(`cmdstat_(?:eval|evalsha|fcall):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return sum
}

// If no due job can run, a taker that follows the answers learns in a few calls that nothing comes
// for a long time: it does not spin.
func TestNobodySpinsWhereEverythingIsBlocked(t *testing.T) {
	t.Parallel()
	const hosts = 100 // five times what one call looks at
	for _, c := range []struct {
		name  string
		limit int
		spec  func(*jobs.Spec)
		block func(t *testing.T, q *queuetest.Queue)
		most  int           // calls
		rest  time.Duration // the least quiet time after them
	}{
		{name: "a limit", limit: 0, most: hosts/20 + 2, rest: 50 * time.Second},
		{name: "groups", limit: -1, spec: func(s *jobs.Spec) { s.Disruptive = true },
			block: func(t *testing.T, q *queuetest.Queue) {
				s := disruptive("v-1")
				guarded(t, q, s, 0, hosts)
				drain(t, q, "2", 20) // one of each pair runs
			}, most: (hosts+hosts/2)/20 + 2, rest: 30 * time.Second},
		{name: "hosts", limit: -1, block: func(t *testing.T, q *queuetest.Queue) {
			s := spec()
			s.Inventory = "v-1"
			submit(t, q, s, hosts)
			drain(t, q, "2", 20)
		}, most: hosts/20 + 2, rest: 30 * time.Second},
		{name: "customers", limit: -1, block: func(t *testing.T, q *queuetest.Queue) {
			for _, name := range []string{"acme", "beta"} {
				if _, err := q.PauseCustomer(t.Context(), name, "x"); err != nil {
					t.Fatal(err)
				}
			}
		}, most: hosts/20 + 2},
		{name: "the zone", limit: -1, block: func(t *testing.T, q *queuetest.Queue) {
			if _, err := q.PauseZone(t.Context(), zone, "x"); err != nil {
				t.Fatal(err)
			}
		}, most: 2}, // the first call finds that the script is not known
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.StartServer(t)
			q := open(t, world{cfg: server.Config()}, "1")
			publish(t, q, hosts, c.limit)
			s := spec()
			s.Inventory = "v" + strconv.Itoa(c.limit)
			if c.spec != nil {
				c.spec(&s)
			}
			if c.block != nil {
				c.block(t, q)
			}
			guarded(t, q, s, 0, hosts)
			before := scriptCalls(t, server)
			r := step(t, q, "1", 1)
			for range 100 {
				if r.Status != jobs.StatusMore && !(r.Status == jobs.StatusNext && r.Next != 0 && r.Next <= r.Now) {
					break
				}
				r = step(t, q, "1", 1)
			}
			if len(r.Jobs) > 0 || r.Status == jobs.StatusMore {
				t.Fatalf("it goes on: %+v", r)
			}
			if calls := scriptCalls(t, server) - before; calls > c.most {
				t.Errorf("%d calls until it was quiet, want at most %d", calls, c.most)
			}
			if rest := r.Next.Sub(r.Now); r.Next != 0 && rest < c.rest {
				t.Errorf("it is to come again after %s, want at least %s", rest, c.rest)
			}
		})
	}
}
