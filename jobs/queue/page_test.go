package queue_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/testkit/redistest"
)

// inTwoZones submits a task on 700 hosts of zone a and 600 of zone b, and returns
// the hosts in the order of the frozen list.
func inTwoZones(t *testing.T, w world) (id jobs.TaskID, hosts []string) {
	t.Helper()
	in := map[string][]string{}
	for zone, n := range map[string]int{"a": 700, "b": 600} {
		for i := range n {
			in[zone] = append(in[zone], fmt.Sprintf("%s%03d", zone, i))
		}
	}
	task := jobs.Task{ID: jobs.NewTaskID(time.Now(), uint16(taskCount.Add(1))), Spec: spec(), Total: 1300}
	if err := open(t, w, "").Submit(t.Context(), task, in, nil); err != nil {
		t.Fatal(err)
	}
	return task.ID, append(slices.Clone(in["a"]), in["b"]...)
}

func TestTheWalkOverATaskStartsAnywhere(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		id, hosts := inTwoZones(t, w)
		q := open(t, w, "")
		for _, from := range []int{0, 1, 499, 500, 501, 699, 700, 701, 1199, 1200, 1299, 1300, 5000} {
			for _, most := range []int{0, 7, 500, 9999} {
				got := []string{}
				err := q.EachJob(t.Context(), id, from, most, func(list []jobs.JobInfo) error {
					if len(list) > min(max(most, 1), 500) {
						t.Errorf("%d jobs at once, want at most %d", len(list), most)
					}
					for _, j := range list {
						got = append(got, j.Host)
					}
					if most < 500 && len(got) > 20 {
						return context.Canceled // enough for this test
					}
					return nil
				})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				want := hosts[min(from, len(hosts)):]
				if err != nil {
					want = want[:len(got)]
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("from %d, %d at a time (-want +got):\n%s", from, most, diff)
				}
			}
		}
	})
}

// A page at the end of a big task must not cost more than one at its beginning: otherwise paging
// through a task is quadratic.
func TestAPageCostsWhatIsOnIt(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	w := world{cfg: s.Config()}
	id, _ := inTwoZones(t, w)
	q := open(t, w, "")
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2})
	t.Cleanup(func() { rdb.Close() })
	read := func() int {
		text, err := rdb.Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`cmdstat_hmget:calls=(\d+)`).FindStringSubmatch(text)
		if found == nil {
			return 0
		}
		n, _ := strconv.Atoi(found[1])
		return n
	}
	for _, from := range []int{0, 690, 1250} {
		before := read()
		err := q.EachJob(t.Context(), id, from, 10, func([]jobs.JobInfo) error { return context.Canceled })
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		// The records of the page are fields of its task.
		if n := read() - before; n != 1 {
			t.Errorf("a page of 10 jobs from %d on took %d calls", from, n)
		}
	}
}
