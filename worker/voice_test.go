package worker

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

// Whatever is said and whenever it is fetched: what is passed on is part of it, in
// its place and in order, and what stays readable is bounded head and tail.
func TestAVoiceRepeatsWhatWasSaid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := 8 * rapid.IntRange(1, 8).Draw(t, "most")
		v := newVoice(jobs.Grant{Job: "0000000001:fw1", Token: 7}, most)
		var all []byte
		readable := map[int64]int{}
		at := int64(0)
		for range rapid.IntRange(0, 20).Draw(t, "rounds") {
			for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 40)).Draw(t, "said") {
				all = append(all, p...)
				if n, err := v.Write(p); n != len(p) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
				if rapid.IntRange(0, 9).Draw(t, "skip") == 0 {
					v.Skip(3)
					all = append(all, "???"...)
				}
			}
			if len(v.head)+len(v.tail) > 4*v.part {
				t.Fatalf("%d bytes wait, %d are allowed", len(v.head)+len(v.tail), 4*v.part)
			}
			list := v.speeches()
			for _, s := range list {
				begin := s.End - int64(len(s.Data))
				if begin < at || !bytes.Equal(s.Data, all[begin:s.End]) || s.Job != v.job || s.Token != 7 {
					t.Fatalf("behind %d of %q it says %+v", at, all, s)
				}
				at = s.End
				readable[s.End] = len(s.Data)
				for _, end := range s.Drop {
					if readable[end] == 0 {
						t.Fatalf("a speech is dropped that is not there: %d", end)
					}
					delete(readable, end)
				}
			}
			if len(list) > 0 && at != int64(len(all)) && !bytes.HasSuffix(all, []byte("???")) {
				t.Fatalf("it stops at %d of %d bytes", at, len(all))
			}
			sum := 0
			for _, n := range readable {
				sum += n
			}
			if sum > most+2*v.part {
				t.Fatalf("%d bytes stay readable, want at most %d", sum, most+2*v.part)
			}
		}
	})
}

func TestAVoiceKeepsTheFirstWords(t *testing.T) {
	t.Parallel()
	v := newVoice(jobs.Grant{}, 64)
	for i := range 1000 {
		fmt.Fprintf(v, "%03d ", i)
	}
	list := v.speeches()
	if len(list) != 2 || string(list[0].Data) != "000 001 002 003 " || string(list[1].Data) != "996 997 998 999 " ||
		list[0].End != 16 || list[1].End != 4000 {
		t.Errorf("it says %+v", list)
	}
	fmt.Fprint(v, "and on")
	if list := v.speeches(); len(list) != 1 || string(list[0].Data) != "and on" || list[0].End != 4006 {
		t.Errorf("then it says %+v", list)
	}
}

// What was heard and is not in the result would be shown in wrong places.
func TestAVoiceThatHeardSomethingElseFallsSilent(t *testing.T) {
	t.Parallel()
	v := newVoice(jobs.Grant{}, 64)
	s := newTranscript(64, v)
	fmt.Fprint(v, "abc")
	s.add(remote.Output{Head: []byte("abcd")})
	fmt.Fprint(v, "ef")
	if list := v.speeches(); len(list) != 0 {
		t.Errorf("it says %+v", list)
	}
}

// What nobody but ourselves says, about an upload, is heard at its end.
func TestAVoiceHearsWhatOnlyTheWorkerSays(t *testing.T) {
	t.Parallel()
	v := newVoice(jobs.Grant{}, 400)
	s := newTranscript(400, v)
	s.remark("step 1 of 2: put")
	s.add(remote.Output{Head: []byte("put\n"), Omitted: 5, Tail: []byte("there\n")})
	s.remark("step 2 of 2: run")
	fmt.Fprint(v, "abc")
	s.add(remote.Output{Head: []byte("abc")})
	var heard string
	for _, p := range v.speeches() {
		heard += fmt.Sprintf("%d %s|", p.End, p.Data)
	}
	if want := "27 == step 1 of 2: put ==\nput\n|64 there\n== step 2 of 2: run ==\nabc|"; heard != want {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

func TestManySmallSpeechesAreBounded(t *testing.T) {
	t.Parallel()
	var s spent
	kept := map[int64]bool{}
	for i := range int64(5000) {
		kept[i] = true
		for _, end := range s.add(i, 1, 1000) {
			delete(kept, end)
		}
	}
	if len(kept) > 1000+speechesKept || !kept[0] || !kept[4999] {
		t.Errorf("%d speeches are kept", len(kept))
	}
}

// talks is a command that says a word each second, and ends after so many.
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

func TestWhatRunningJobsSayIsPassedOn(t *testing.T) {
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

func TestShortJobsAreNotHeard(t *testing.T) {
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

// A Redis that does not answer costs nothing but what would have been heard live.
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
			v := c.Live.(*voice)
			v.mu.Lock()
			waits = len(v.head) + len(v.tail)
			v.mu.Unlock()
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
		if waits > 3*speechMax {
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

func TestWhoIsNotTheLatestFallsSilent(t *testing.T) {
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

// Many floods share a call, and none is left out for ever.
func TestACallIsBounded(t *testing.T) {
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
			if size > voicesMax+2*speechMax {
				t.Errorf("a call carries %d bytes", size)
			}
		}
		if len(who) != 64 {
			t.Errorf("%d of 64 were heard in %d calls", len(who), len(s.q.heard))
		}
	})
}
