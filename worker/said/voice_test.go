package said

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"muster/fleet/remote"
	"muster/jobs"
)

// Whatever the output, and whenever the clerk fetches it: the speeches are parts of the output, at
// the right positions and in order, and a bounded head and tail of them stay readable.
func TestAVoicePassesOnPartsOfTheOutput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := 8 * rapid.IntRange(1, 8).Draw(t, "most")
		v := NewVoice(jobs.Grant{Job: "0000000001:fw1", Token: 7}, most)
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
			list := v.Speeches()
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

func TestAVoiceKeepsTheHeadOfTheOutput(t *testing.T) {
	t.Parallel()
	v := NewVoice(jobs.Grant{}, 64)
	for i := range 1000 {
		fmt.Fprintf(v, "%03d ", i)
	}
	list := v.Speeches()
	if len(list) != 2 || string(list[0].Data) != "000 001 002 003 " || string(list[1].Data) != "996 997 998 999 " ||
		list[0].End != 16 || list[1].End != 4000 {
		t.Errorf("it says %+v", list)
	}
	fmt.Fprint(v, "and on")
	if list := v.Speeches(); len(list) != 1 || string(list[0].Data) != "and on" || list[0].End != 4006 {
		t.Errorf("then it says %+v", list)
	}
}

// Output that is not in the result would be shown at wrong positions.
func TestAVoiceWithOtherOutputThanTheResultFallsSilent(t *testing.T) {
	t.Parallel()
	v := NewVoice(jobs.Grant{}, 64)
	s := NewTranscript(64, v)
	fmt.Fprint(v, "abc")
	s.Add(remote.Output{Head: []byte("abcd")})
	fmt.Fprint(v, "ef")
	if list := v.Speeches(); len(list) != 0 {
		t.Errorf("it says %+v", list)
	}
}

// The worker itself makes the output of an upload, and the voice gets it at the end of the upload.
func TestAVoiceGetsOutputOfTheWorker(t *testing.T) {
	t.Parallel()
	v := NewVoice(jobs.Grant{}, 400)
	s := NewTranscript(400, v)
	s.Remark("step 1 of 2: put")
	s.Add(remote.Output{Head: []byte("put\n"), Omitted: 5, Tail: []byte("there\n")})
	s.Remark("step 2 of 2: run")
	fmt.Fprint(v, "abc")
	s.Add(remote.Output{Head: []byte("abc")})
	var heard string
	for _, p := range v.Speeches() {
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
