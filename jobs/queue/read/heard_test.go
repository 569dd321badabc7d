package read

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/queue/codec"
)

// stage is a job whose host writes output in attempt after attempt, together with the entries that
// are kept of it.
type stage struct {
	entries []redis.XMessage
	all     []byte // all output of the host, as far as anybody can know
	kept    []bool // the bytes that must be found in the end …
	missed  []bool // … except by a reader who had read further by then
	token   int64
}

func (s *stage) add(id string, field, value string) {
	s.entries = append(s.entries, redis.XMessage{ID: id, Values: map[string]any{field: value}})
}

// attempt lets the host write output, calls listen now and then, and ends with or without a result.
func (s *stage) attempt(t *rapid.T, listen func()) {
	s.token += 10
	base, words, missed := len(s.all), []byte{}, []bool{}
	for range rapid.IntRange(0, 5).Draw(t, "speeches") {
		lost := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "lost")
		data := rapid.SliceOfN(rapid.Byte(), 1, 6).Draw(t, "data")
		words = append(append(words, lost...), data...)
		missed = append(missed, slices.Repeat([]bool{true}, len(lost))...)
		missed = append(missed, make([]bool, len(data))...)
		s.add(fmt.Sprintf("%d-%d", s.token, len(words)), "live", string(data))
		if rapid.Bool().Draw(t, "listen") {
			listen()
		}
	}
	defer func() { s.missed = append(s.missed, missed...) }()
	if rapid.Bool().Draw(t, "dies") {
		s.all, s.kept = append(s.all, words...), append(s.kept, make([]bool, len(words))...)
		return
	}
	words = append(words, rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "rest")...)
	missed = append(missed, make([]bool, len(words)-len(missed))...)
	s.entries = slices.DeleteFunc(s.entries, func(e redis.XMessage) bool {
		token, _, _ := codec.LiveID(e.ID)
		return int64(token) == s.token
	})
	half := rapid.IntRange(1, 8).Draw(t, "half")
	r := jobs.Result{Token: jobs.Token(s.token), Said: jobs.Said{Output: words}}
	s.all, s.kept = append(s.all, words...), append(s.kept, slices.Repeat([]bool{true}, len(words))...)
	if left := len(words) - 2*half; left > 0 {
		r.Output = slices.Concat(words[:half], words[len(words)-half:])
		r.Gap = jobs.Gap{At: half, Left: int64(left)}
		for i := range left {
			s.kept[base+half+i] = false
		}
	}
	if record := string(codec.SaidOf(r)); record != "" {
		s.add(fmt.Sprintf("%d-%d", s.token, len(words)+1), "said", record)
	}
}

// check compares pieces with the output of the host.
func (s *stage) check(t *rapid.T, who string, pieces jobs.Output) (found []bool) {
	found = make([]bool, len(s.all))
	at := int64(0)
	for _, p := range pieces {
		if p.At < at || p.End() > int64(len(s.all)) || !bytes.Equal(p.Data, s.all[p.At:p.End()]) {
			t.Fatalf("%s has %q at %d, behind %d of %q", who, p.Data, p.At, at, s.all)
		}
		for i := p.At; i < p.End(); i++ {
			found[i] = true
		}
		at = p.End()
	}
	return found
}

// A reader from the start and a later reader find the same bytes in the same places, and of
// attempts with a known end all output that was kept; but no reader goes back.
func TestWhatIsHeardIsWhatWasSaid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &stage{token: 1000}
		var follower Heard
		var followed jobs.Output
		listen := func() {
			var fresh []redis.XMessage
			for _, e := range s.entries {
				if compareIDs(e.ID, follower.last) > 0 {
					fresh = append(fresh, e)
				}
			}
			followed = append(followed, follower.read(fresh)...)
		}
		for range rapid.IntRange(1, 4).Draw(t, "attempts") {
			s.attempt(t, listen)
			if rapid.Bool().Draw(t, "listen at its end") {
				listen()
			}
		}
		listen()
		var reader Heard
		read := reader.read(s.entries)
		in, out := s.check(t, "the follower", followed), s.check(t, "the reader", read)
		for i, kept := range s.kept {
			if kept && !((in[i] || s.missed[i]) && out[i]) {
				t.Fatalf("byte %d of %q: followed %v, read %v", i, s.all, in[i], out[i])
			}
		}
	})
}

func compareIDs(a, b string) int {
	x, n, _ := codec.LiveID(a)
	y, k, _ := codec.LiveID(b)
	if x != y {
		return int(x - y)
	}
	return int(n - k)
}

func FuzzSaid(f *testing.F) {
	f.Add("17 3 9\nabcdef")
	f.Add("nonsense")
	f.Add("17 3 9 0 12 2 5 17 3 7\nabcdef")
	f.Add("1 2 3 4 5 6 7")
	f.Fuzz(func(t *testing.T, text string) {
		token, gap, runs, data := codec.ReadSaid(text)
		if gap.At < 0 || gap.At > len(data) || gap.Left < 0 {
			t.Fatalf("gap %+v in %d bytes", gap, len(data))
		}
		var h Heard
		for _, field := range []string{"said", "live", "data", "other"} {
			h.read([]redis.XMessage{{ID: text, Values: map[string]any{field: text}},
				{ID: "5-3", Values: map[string]any{field: text, "runs": text}}})
		}
		again, g, r, d := codec.ReadSaid(string(codec.SaidOf(jobs.Result{Token: token,
			Said: jobs.Said{Output: data, Gap: gap, Runs: runs}})))
		if len(data) > 0 && len(data) < codec.OutputMax &&
			(again != token || g != gap || r != runs || !bytes.Equal(d, data)) {
			t.Errorf("%d %+v %+v %q became %d %+v %+v %q", token, gap, runs, data, again, g, r, d)
		}
	})
}
