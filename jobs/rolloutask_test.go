package jobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/jobs"
)

func resolved(r jobs.Rollout, wrong []jobs.RolloutMistake) string {
	var list []string
	for _, w := range wrong {
		list = append(list, w.Field+": "+w.Err.Error())
	}
	if len(list) > 0 {
		slices.Sort(list)
		return strings.Join(list, "\n")
	}
	most := "any"
	if r.MaxFailed != nil {
		most = fmt.Sprint(*r.MaxFailed)
	}
	return fmt.Sprintf("%s %v %v %v", most, r.Waves, r.Soak, r.Breaker)
}

func TestWhatIsAskedBecomesNumbers(t *testing.T) {
	t.Parallel()
	waves := func(text string) jobs.RolloutAsk {
		return jobs.RolloutAsk{Stages: jobs.Stages{Waves: strings.Split(text, ",")}}
	}
	for _, c := range []struct {
		ask   jobs.RolloutAsk
		total int
		want  string
	}{
		{jobs.RolloutAsk{}, 200, "any [] 0s {0 0s}"},
		{jobs.RolloutAsk{MaxFailed: "5"}, 200, "5 [] 0s {0 0s}"},
		{jobs.RolloutAsk{MaxFailed: "0"}, 1, "0 [] 0s {0 0s}"},
		{jobs.RolloutAsk{MaxFailed: "5%"}, 199, "9 [] 0s {0 0s}"},
		{jobs.RolloutAsk{MaxFailed: "0.5%"}, 200, "1 [] 0s {0 0s}"},
		{jobs.RolloutAsk{MaxFailed: "1%"}, 10, "0 [] 0s {0 0s}"},
		{jobs.RolloutAsk{MaxFailed: "29%"}, 100, "29 [] 0s {0 0s}"},
		{jobs.RolloutAsk{Breaker: "3/10m"}, 3, "any [] 0s {3 10m0s}"},
		{waves("1,10%,50%,100%"), 200, "any [1 19 80 100] 0s {0 0s}"},
		{waves("1,10%, 50%,7"), 7,
			`waves: 10% is 1 of 7 hosts: want more than the wave before, 1`},
		{waves("100%"), 7, "any [7] 0s {0 0s}"},
		{jobs.RolloutAsk{Stages: jobs.Stages{Canary: "3", Soak: "5m"}}, 200, "any [3 197] 5m0s {0 0s}"},

		{jobs.RolloutAsk{MaxFailed: "200"}, 200,
			`max_failed: "200" of 200 hosts: with that it never stops; want less than all`},
		{jobs.RolloutAsk{MaxFailed: "100%"}, 3,
			`max_failed: "100%" is 3 of 3 hosts: with that it never stops; want less than all`},
		{jobs.RolloutAsk{MaxFailed: "101%"}, 3, `max_failed: "101%": want more than 0% and at most 100%`},
		{jobs.RolloutAsk{MaxFailed: "0%"}, 3, `max_failed: "0%": want more than 0% and at most 100%`},
		{jobs.RolloutAsk{MaxFailed: "-1"}, 3, `max_failed: "-1": want a number such as 5, or a share such as 10%`},
		{jobs.RolloutAsk{MaxFailed: "NaN%"}, 3,
			`max_failed: "NaN%": want a number such as 5, or a share such as 10%`},
		{jobs.RolloutAsk{MaxFailed: "many"}, 3,
			`max_failed: "many": want a number such as 5, or a share such as 10%`},
		{waves("1,5%,1"), 200,
			`waves: 1: want more than the wave before, 5% is 10 of 200 hosts`},
		{waves("0,0%,101%,9,5,50%"), 8, `waves: "0": want at least 1
"0%": want more than 0% and at most 100%
"101%": want more than 0% and at most 100%
9: there are only 8 hosts
50% is 4 of 8 hosts: want more than the wave before, 5`},
		{waves("1,50%"), 8, `waves: the last one, 50% is 4 of 8 hosts, leaves 4 hosts out: end with 100%`},
		{jobs.RolloutAsk{Stages: jobs.Stages{Canary: "3"}}, 3,
			`canary: 3 of 3 hosts: want less than all, so that others come after it`},
		{jobs.RolloutAsk{Stages: jobs.Stages{Canary: "10%"}}, 3, `canary: "10%": want a number of hosts, such as 3`},
		{jobs.RolloutAsk{Stages: jobs.Stages{Canary: "1", Waves: []string{"100%"}}}, 3,
			`canary: there are waves as well: the first of them is the canary, so want only one of the two`},
		{jobs.RolloutAsk{Breaker: "3"}, 3, `breaker: "3": want failures / time, such as 3/10m`},
		{jobs.RolloutAsk{Breaker: "0/1m"}, 3, `breaker: "0/1m": want 1 to 100 failures`},
		{jobs.RolloutAsk{Breaker: "2/0s"}, 3, `breaker: "2/0s": want a time from 1s to 24h`},
		{jobs.RolloutAsk{Breaker: "4/1m"}, 1, `breaker: "4/1m": there is only 1 host`},
		{jobs.RolloutAsk{Breaker: "4/1m"}, 3, `breaker: "4/1m": there are only 3 hosts`},
		{jobs.RolloutAsk{UnreachableOK: true, Stages: jobs.Stages{Soak: "soon", Gate: true, Health: "x"}}, 3,
			`gate: there are no waves: it is about what happens between them
health: there are no waves: it is about what happens between them
soak: "soon": want a time from 0s to 720h, such as 5m
soak: there are no waves: it is about what happens between them
unreachable_ok: there is no rule that counts failures`},
		{jobs.RolloutAsk{Stages: jobs.Stages{HealthArgs: map[string]string{"a": "b"}}}, 3,
			`health_args: there is no health check that they are for`},
	} {
		if got := resolved(c.ask.Resolve(c.total)); got != c.want {
			t.Errorf("%+v of %d hosts:\n%s\nwant\n%s", c.ask, c.total, got, c.want)
		}
	}
}

// Whatever people write: nothing panics, and a rollout that is accepted fits the task.
func FuzzRolloutAsk(f *testing.F) {
	f.Add("5% 3/10m", "1,10%,100%", "", 200)
	f.Add("1e9 1/1h", "0.1%,99.9%,100%", "2", 3)
	f.Fuzz(func(t *testing.T, rule, waves, canary string, total int) {
		if total < 1 {
			return
		}
		failed, breaker, _ := strings.Cut(rule, " ")
		a := jobs.RolloutAsk{MaxFailed: failed, Breaker: breaker, Stages: jobs.Stages{Canary: canary}}
		if waves != "" {
			a.Waves = strings.Split(waves, ",")
		}
		r, wrong := a.Resolve(total)
		if len(wrong) > 0 {
			return
		}
		n := 0
		for _, w := range r.Waves {
			if n += w; w < 1 {
				t.Errorf("%v: a wave without hosts", r.Waves)
			}
		}
		if len(r.Waves) > 0 && n != total {
			t.Errorf("%v: %d hosts, want %d", r.Waves, n, total)
		}
		if r.MaxFailed != nil && (*r.MaxFailed < 0 || *r.MaxFailed >= total) {
			t.Errorf("%d of %d may fail", *r.MaxFailed, total)
		}
		if b := r.Breaker; b.Failures > 0 && (b.Within < time.Second || b.Failures > total) {
			t.Errorf("%+v", b)
		}
	})
}

func TestMembersOfAGroupNeverShareAWave(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "a", "b", "c", "d"}), 1, 30).Draw(t, "groups")
		var sizes []int
		for left := len(groups); left > 0; {
			n := rapid.IntRange(1, left).Draw(t, "size")
			sizes, left = append(sizes, n), left-n
		}
		order, waves := jobs.Spread(groups, sizes)
		if seen := slices.Sorted(slices.Values(order)); len(seen) != len(groups) ||
			!slices.Equal(seen, slices.Compact(slices.Clone(seen))) {
			t.Fatalf("order %v", order)
		}
		from := 0
		for w, n := range waves {
			if n < 1 || w < len(sizes) && n > sizes[w] {
				t.Fatalf("waves %v of %v", waves, sizes)
			}
			in := map[string]bool{}
			for _, host := range order[from : from+n] {
				if g := groups[host]; g != "" && in[g] {
					t.Fatalf("two of %s in wave %d: %v", g, w, order)
				} else {
					in[g] = true
				}
			}
			from += n
		}
	})
}

func TestHowHostsAreArranged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		groups []string
		sizes  []int
		want   string
	}{
		{[]string{"", "", ""}, []int{1, 2}, "[0 1 2] [1 2]"},
		{[]string{"a", "a", "b", "b"}, []int{1, 3}, "[0 1 2 3] [1 2 1]"},
		{[]string{"a", "a", "b", "b", ""}, []int{2, 3}, "[0 2 1 3 4] [2 3]"},
		{[]string{"a", "a", "a"}, []int{3}, "[0 1 2] [1 1 1]"},
	} {
		order, waves := jobs.Spread(c.groups, c.sizes)
		if got := fmt.Sprint(order, " ", waves); got != c.want {
			t.Errorf("%q in %v: %s, want %s", c.groups, c.sizes, got, c.want)
		}
	}
}

// An order to open a certain wave opens that wave or none.
func TestAWaveIsOpenedInItsTurn(t *testing.T) {
	task := func(state jobs.TaskState, wave int, stopped string) jobs.TaskInfo {
		r := &jobs.RolloutInfo{Rollout: jobs.Rollout{Waves: []int{1, 2, 3}}}
		r.Wave, r.Stopped = wave, stopped
		return jobs.TaskInfo{Task: "0wcy7y2fb2", State: state, Orders: jobs.Orders{Rollout: r}}
	}
	for _, c := range []struct {
		task    jobs.TaskInfo
		wave    int
		already bool
		wrong   string
	}{
		{task(jobs.TaskRunning, 1, ""), 2, false, ""},
		{task(jobs.TaskRunning, 1, ""), 1, true, ""},
		{task(jobs.TaskRunning, 3, ""), 2, true, ""},
		{task(jobs.TaskRunning, 1, ""), 3, false, "wave 2 comes before wave 3, and none is passed over: 1 of 3 are open"},
		{task(jobs.TaskRunning, 1, ""), 4, false, "there is no wave 4: task 0wcy7y2fb2 has waves 1 to 3"},
		{task(jobs.TaskStopped, 2, "too many"), 2, false, "wave 2 is open, and the task is stopped: leave the wave out"},
		{task(jobs.TaskStopped, 2, "too many"), 3, false, ""},
		{task(jobs.TaskEnded, 2, "too many"), 1, true, ""},
		{jobs.TaskInfo{Task: "0wcy7y2fb2"}, 1, false, "task 0wcy7y2fb2 has no waves"},
	} {
		already, err := c.task.MayOpen(c.wave)
		if already != c.already || (err == nil) != (c.wrong == "") ||
			err != nil && !strings.HasPrefix(err.Error(), c.wrong) {
			t.Errorf("wave %d of %+v: %t, %v", c.wave, c.task.Rollout, already, err)
		}
	}
}
