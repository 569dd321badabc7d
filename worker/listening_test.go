package worker

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/worker/said"
)

func TestTheOutputOfRunningJobsIsPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Slots = 3
		s.q.specs[task1] = spec(t, shell("one"), shell("two"))
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			return talks(ctx, c, h.Name, 4)
		}
		for i := range 3 {
			s.q.put(task1, host(i))
		}
		begun := time.Now()
		s.start()
		s.finish()
		heard := map[jobs.ID]string{}
		for i, c := range s.q.heard {
			if i == 0 && c.at.Sub(begun) < voicesAfter {
				t.Errorf("the first call came after %s", c.at.Sub(begun))
			}
			if i > 0 && c.at.Sub(s.q.heard[i-1].at) < voicesEvery {
				t.Errorf("two calls within %s", c.at.Sub(s.q.heard[i-1].at))
			}
			for _, speech := range c.list {
				heard[speech.Job] += string(speech.Data)
				if int64(len(heard[speech.Job])) != speech.End {
					t.Errorf("%s ends at %d, and %d bytes were heard", speech.Job, speech.End, len(heard[speech.Job]))
				}
			}
		}
		if n := len(s.q.heard); n < 5 || n > 10 {
			t.Errorf("%d calls for three jobs that say eight words each in as many seconds", n)
		}
		for i := range 3 {
			id := jobs.NewID(task1, host(i))
			whole := string(s.q.only(id).Output)
			if !strings.HasPrefix(whole, heard[id]) || !strings.Contains(heard[id], "== step 2 of 2: two ==\n") {
				t.Errorf("of %q was heard %q", whole, heard[id])
			}
		}
	})
}

func TestTheOutputOfShortJobsIsNotPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			fmt.Fprint(c.Live, "hello\n")
			_, err := works(ctx, voicesAfter-100*time.Millisecond)
			return remote.Result{Output: remote.Output{Head: []byte("hello\n")}}, err
		}
		for i := range 20 {
			s.q.put(task1, host(i))
		}
		s.start()
		s.finish()
		if n := len(s.q.heard); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// If Redis does not answer, only live output is lost.
func TestNobodyWaitsForAListener(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		flood := bytes.Repeat([]byte("x"), 8<<10)
		s.q.speak = func(ctx context.Context, _ []jobs.Speech) ([]jobs.ID, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		var waits int
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			begun := time.Now()
			for range 100 << 20 / len(flood) {
				_, _ = c.Live.Write(flood)
			}
			v := c.Live.(*said.Voice)
			waits = v.Waiting()
			if took := time.Since(begun); took != 0 {
				t.Errorf("a flood took %s of pretended time", took)
			}
			return works(ctx, 12*time.Second)
		}
		g := s.q.put(task1, host(0))
		s.start()
		s.finish()
		if r := s.q.only(g.Job); r.Outcome != jobs.Succeeded {
			t.Errorf("%+v", r)
		}
		if waits > 3*said.SpeechMax {
			t.Errorf("%d bytes of the flood wait", waits)
		}
		if n := len(s.q.heard); n != 1 {
			t.Errorf("%d calls while there is no answer", n)
		}
	})
}

func TestAfterAFailedCallThereIsAPause(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.speak = func(context.Context, []jobs.Speech) ([]jobs.ID, error) { return nil, errAway }
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			return talks(ctx, c, h.Name, 15)
		}
		s.q.put(task1, host(0))
		s.start()
		s.finish()
		if n := len(s.q.heard); n < 2 || n > 4 {
			t.Errorf("%d calls in 15 s, with pauses of %s", n, voicesPause)
		}
	})
}

func TestAnOutdatedAttemptFallsSilent(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Slots = 2
		stale := s.q.put(task1, host(0))
		s.q.put(task1, host(1))
		s.q.speak = func(_ context.Context, list []jobs.Speech) ([]jobs.ID, error) {
			return []jobs.ID{stale.Job}, nil
		}
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			return talks(ctx, c, h.Name, 6)
		}
		s.start()
		s.finish()
		count := map[jobs.ID]int{}
		for _, c := range s.q.heard {
			for _, speech := range c.list {
				count[speech.Job]++
			}
		}
		if count[stale.Job] != 1 || count[jobs.NewID(task1, host(1))] < 4 {
			t.Errorf("speeches: %v", count)
		}
	})
}

// Many hosts with much output share a call, and each gets its turn.
func TestACallWithOutputIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Slots = 64
		flood := bytes.Repeat([]byte("x"), 64<<10)
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			for range 30 {
				_, _ = c.Live.Write(flood)
				if r, err := works(ctx, 500*time.Millisecond); err != nil {
					return r, err
				}
			}
			return remote.Result{}, nil
		}
		for i := range 64 {
			s.q.put(task1, host(i))
		}
		s.start()
		s.finish()
		who := map[jobs.ID]bool{}
		for _, c := range s.q.heard {
			size := 0
			for _, speech := range c.list {
				who[speech.Job] = true
				size += len(speech.Data)
			}
			if size > voicesMax+2*said.SpeechMax {
				t.Errorf("a call carries %d bytes", size)
			}
		}
		if len(who) != 64 {
			t.Errorf("%d of 64 were heard in %d calls", len(who), len(s.q.heard))
		}
	})
}

// A host prints lines that look like the lines of muster, in a step and in the question of a gate.
// Readers of the transcript and of the live output can tell them apart. The expect of a step reads
// the unchanged words of the host.
func TestAHostCannotForgeLinesOfTheTranscript(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		const said = "== step 2 of 2: tell ==\nall is well"
		s.reads("name: a\ntimeout: 20s\nsteps:\n" +
			"- {name: look, run: look, expect: {match: '^== step 2 of 2'}}\n- {name: tell, run: tell}\n")
		var heard bytes.Buffer
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			if c.Shell == "look" {
				_, _ = c.Live.Write([]byte(said))
				return remote.Result{Output: remote.Output{Head: []byte(said)}}, nil
			}
			heard.WriteString("ran")
			return remote.Result{}, nil
		}
		got := s.one()
		const want = "== step 1 of 2: look ==\n==|step 2 of 2: tell ==\nall is well\n== step 2 of 2: tell ==\n"
		if string(got.Output) != want || heard.String() != "ran" {
			t.Errorf("%s %s:\n%s\nwant\n%s", got.Outcome, got.Error, got.Output, want)
		}
		if strings.Contains(said, "|") {
			t.Error("what the host said was changed")
		}
	})
}

// talks is a command that says a word each second, and ends after a number of words.
func talks(ctx context.Context, c remote.Command, host string, words int) (remote.Result, error) {
	var all strings.Builder
	for i := range words {
		word := fmt.Sprintf("%s says %d\n", host, i)
		all.WriteString(word)
		fmt.Fprint(c.Live, word)
		if r, err := works(ctx, time.Second); err != nil {
			return r, err
		}
	}
	return remote.Result{Output: remote.Output{Head: []byte(all.String())}}, nil
}
