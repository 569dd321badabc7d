package applies_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/applies"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/keys"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/windows"
)

// childURL names the variable by which this binary is the process that applies until it is killed.
const childURL = "APPLIES_TEST_REDIS"

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		fmt.Fprintln(os.Stderr, applyForever(url))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// signed vouches with a key of servers.
type signed struct{ serverkey.Keys }

func (s signed) Vouch(name, text string) (string, error) {
	return s.Keys.Vouch(serverkey.Applies, name, text), nil
}

func (s signed) Vouched(name, kept string) (string, error) {
	return s.Keys.Vouched(serverkey.Applies, name, kept)
}

func voucher(t testing.TB) signed {
	t.Helper()
	k, err := serverkey.Parse([]byte(serverkey.File("testworld", [serverkey.Size]byte{7})))
	if err != nil {
		t.Fatal(err)
	}
	return signed{k}
}

// house is a queue with its connection.
type house struct {
	*queuetest.Queue
	c *queue.Conn
}

func each(t *testing.T, test func(t *testing.T, q house, s *applies.Store)) {
	t.Helper()
	t.Run("mini", func(t *testing.T) {
		t.Parallel()
		_, cfg := redistest.StartMini(t)
		run(t, cfg, test)
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		run(t, redistest.StartServer(t).Config(), test)
	})
}

func run(t *testing.T, cfg queue.Config, test func(t *testing.T, q house, s *applies.Store)) {
	t.Helper()
	c, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	test(t, house{queuetest.Of(c), c}, applies.New(c, voucher(t)))
}

const schedulesMany = 20

// deed changes many schedules and the timetable to the same number n, and says it.
func deed(ctx context.Context, q house, n int) (applies.Deed, error) {
	d := applies.Deed{ID: jobID(n), Result: fmt.Appendf(nil, `{"id":%q,"n":%d}`, jobID(n), n),
		Set: map[string]string{"schedule/s0": "git:" + strconv.Itoa(n)}, Event: jobs.Alert{Event: "applied", Object: "x"}}
	stamp, _, err := q.ScheduleStamp(ctx)
	if err != nil {
		return d, err
	}
	was, err := q.Schedules(ctx)
	if err != nil {
		return d, err
	}
	var list []hub.ScheduleChange
	for i := range schedulesMany {
		c := hub.ScheduleChange{To: &jobs.Schedule{Version: n, Entry: windows.Entry{Name: "s" + strconv.Itoa(i),
			Cron: "@daily", Zone: "UTC", Enabled: true, Request: windows.Request{Runbook: "exec", On: "all"}}}}
		for _, one := range was {
			if one.Name == c.To.Name {
				c.Was = one
			}
		}
		list = append(list, c)
	}
	table, err := q.Timetable(ctx)
	if err != nil {
		return d, err
	}
	table.Files = []windows.File{{Name: "w.yaml", Content: "# " + strconv.Itoa(n) + "\nwindows: []\n"}}
	times, err := q.PrepareTimetable(table, jobs.Alert{Event: "windows-applied", Object: "x"})
	if err != nil {
		return d, err
	}
	schedules, err := q.PrepareSchedules(stamp, list)
	d.Changes = []hub.Prepared{schedules, times}
	return d, err
}

func jobID(n int) string { return fmt.Sprintf("%010d", n) }

// inForce returns the number that everything says, or an error if two things differ.
func inForce(ctx context.Context, q house, s *applies.Store) (int, error) {
	state, err := s.State(ctx)
	if err != nil || state.Version == 0 {
		return 0, err
	}
	last, err := s.Result(ctx, strconv.FormatInt(state.Version, 10))
	if err != nil {
		return 0, err
	}
	var n int
	if _, err := fmt.Sscanf(last.Text[strings.LastIndex(last.Text, ":"):], ":%d}", &n); err != nil || last.Doubt != nil {
		return 0, errors.Join(err, last.Doubt)
	}
	list, err := q.Schedules(ctx)
	if err != nil || len(list) != schedulesMany {
		return n, fmt.Errorf("%d schedules: %w", len(list), err)
	}
	for _, one := range list {
		if one.Version != n {
			err = errors.Join(err, fmt.Errorf("schedule %s has %d", one.Name, one.Version))
		}
	}
	table, readErr := q.Timetable(ctx)
	if readErr != nil || len(table.Files) != 1 || !strings.HasPrefix(table.Files[0].Content, "# "+strconv.Itoa(n)+"\n") {
		err = errors.Join(err, readErr, fmt.Errorf("the timetable has %v", table.Files))
	}
	if state.Origins["schedule/s0"] != (applies.Origin{Name: "git:" + strconv.Itoa(n), Version: state.Version}) {
		err = errors.Join(err, fmt.Errorf("the origins are %v", state.Origins))
	}
	return n, err
}

func TestAnApplyIsDoneAsAWhole(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, q house, s *applies.Store) {
		for n := 1; n <= 2; n++ {
			state, err := s.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			d, err := deed(t.Context(), q, n)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := s.Apply(t.Context(), state, d); err != nil || v != int64(n) {
				t.Fatalf("version %d: %v", v, err)
			}
			if is, err := inForce(t.Context(), q, s); err != nil || is != n {
				t.Fatalf("%d is in force: %v", is, err)
			}
			if _, err := s.Apply(t.Context(), state, d); !errors.Is(err, queue.ErrStale) {
				t.Errorf("of what is not there any more: %v", err)
			}
		}
		if r, err := s.Result(t.Context(), jobID(1)); err != nil || r.Version != 1 {
			t.Errorf("by its id: %+v %v", r, err)
		}
		if list, err := s.Results(t.Context(), 10); err != nil || len(list) != 2 || list[0].Version != 2 {
			t.Errorf("the list: %+v %v", list, err)
		}
		if _, err := s.Result(t.Context(), "3"); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("one that is not there: %v", err)
		}
	})
}

// A writer to Redis gives no entry an origin: an apply prunes only the entries that servers signed.
func TestAnOriginThatNoServerSignedIsNotBelieved(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, q house, s *applies.Store) {
		state, err := s.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(t.Context(), state, applies.Deed{ID: jobID(1), Result: []byte("{}"),
			Set: map[string]string{"schedule/a": "git:x"}, Event: jobs.Alert{Event: "applied", Object: "x"}}); err != nil {
			t.Fatal(err)
		}
		r := q.c.Redis()
		kept, err := r.HGet(t.Context(), keys.Hub("origins", ""), "schedule/a").Result()
		if err != nil {
			t.Fatal(err)
		}
		// The MAC of another entry, and none.
		if err := r.HSet(t.Context(), keys.Hub("origins", ""), "schedule/b", kept, "schedule/c",
			`{"origin":"git:x","version":1}`).Err(); err != nil {
			t.Fatal(err)
		}
		state, err = s.State(t.Context())
		if err != nil || len(state.Origins) != 1 || strings.Join(state.Doubts, " ") != "schedule/b schedule/c" {
			t.Errorf("%v: %+v", err, state)
		}
		own, err := s.OriginOf(t.Context(), "schedule/a", "schedule/b", "schedule/c", "schedule/d")
		if err != nil || len(own) != 1 || own["schedule/a"] != "git:x" {
			t.Errorf("%v: %v", err, own)
		}
	})
}

func TestOldResultsGo(t *testing.T) {
	t.Parallel()
	_, cfg := redistest.StartMini(t)
	run(t, cfg, func(t *testing.T, q house, s *applies.Store) {
		r, key := q.c.Redis(), keys.Hub("applies", "")
		err := r.HSet(t.Context(), key, "version", applies.Kept, "result:1", `{"id":"old"}`, "id:old", "1").Err()
		if err != nil {
			t.Fatal(err)
		}
		state, err := s.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d := applies.Deed{ID: jobID(1), Result: []byte("{}"), Event: jobs.Alert{Event: "applied", Object: "x"}}
		if _, err := s.Apply(t.Context(), state, d); err != nil {
			t.Fatal(err)
		}
		if n, err := r.HLen(t.Context(), key).Result(); err != nil || n != 3 {
			t.Errorf("%d fields: %v", n, err)
		}
	})
}

// applyForever applies, and says when each apply begins.
func applyForever(url string) error {
	ctx, cfg := context.Background(), queue.DefaultConfig()
	cfg.URL = url
	c, err := queue.Open(ctx, cfg)
	if err != nil {
		return err
	}
	q := house{queuetest.Of(c), c}
	k, err := serverkey.Parse([]byte(serverkey.File("testworld", [serverkey.Size]byte{7})))
	if err != nil {
		return err
	}
	s := applies.New(c, signed{k})
	for {
		state, err := s.State(ctx)
		if err != nil {
			return err
		}
		d, err := deed(ctx, q, int(state.Version)+1)
		if err != nil {
			return err
		}
		fmt.Println(state.Version + 1)
		if _, err := s.Apply(ctx, state, d); err != nil {
			return err
		}
	}
}

// A process that applies is killed at any place: what is in force is the earlier version, or the
// later one, and never a half of each.
func TestAKilledApplyIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	cfg := redistest.StartServer(t).Config()
	run(t, cfg, func(t *testing.T, q house, s *applies.Store) {
		last := 0
		for kill := 1; kill <= 4; kill++ {
			c := exec.Command(os.Args[0])
			c.Stderr = os.Stderr
			c.Env = append(os.Environ(), childURL+"="+cfg.URL)
			out, err := c.StdoutPipe()
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for i := 0; i < 3*kill && lines.Scan(); i++ { // it dies in an apply, each time further on
			}
			_ = c.Process.Kill()
			_, _ = io.Copy(io.Discard, out)
			_ = c.Wait()
			n, err := inForce(t.Context(), q, s)
			if err != nil || n <= last {
				t.Fatalf("after kill %d, %d is in force after %d: %v", kill, n, last, err)
			}
			last = n
		}
	})
}
