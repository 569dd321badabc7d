package said

import (
	"sync"
	"time"

	"muster/jobs"
)

const (
	// SpeechMax bounds the output of a voice that waits, in bytes: so much of its head, and as much
	// of its tail.
	SpeechMax = 16 << 10

	// speechesKept bounds the number of speeches of an attempt that stay for later listeners.
	speechesKept = 500
)

// A Voice passes on the live output of a host in a running attempt. It may lose output by design:
// output that the clerk does not fetch in time is left out, and the host never waits. The result of
// the attempt has the whole transcript.
type Voice struct {
	job   jobs.ID
	token jobs.Token
	part  int           // the most bytes that wait, of the head and of the tail
	half  int           // the most bytes that stay readable, of the head and of the tail
	Turn  time.Duration // the time of its last turn, on the boot clock; only the clerk uses it

	mu      sync.Mutex // guards the fields below
	end     int64      // the number of bytes so far
	head    []byte     // the first output since the last speech
	headEnd int64      // the position of its end
	tail    []byte     // the output after the head, or the last part of it
	mute    bool       // the voice passes on nothing more
	spent   spent
	runs    jobs.Runs
	own     ownLines
}

// NewVoice returns the voice of an attempt whose transcript has at most so many bytes.
func NewVoice(g jobs.Grant, outputMax int) *Voice {
	return &Voice{job: g.Job, token: g.Token, part: min(SpeechMax, outputMax/4), half: outputMax / 2}
}

// Write takes output of the host. It never waits and never fails.
func (v *Voice) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.take(v.own.spare(p))
	return len(p), nil
}

// take takes output. The caller holds mu.
func (v *Voice) take(p []byte) {
	if !v.mute {
		v.keep(p)
	}
	v.end += int64(len(p))
}

// tell takes a line of muster, and the runs that are known with it.
func (v *Voice) tell(line string, runs jobs.Runs) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if line != "" {
		v.own = ownLines{}
	}
	v.take([]byte(line))
	v.runs = runs
}

// Skip notes that bytes of the output are lost.
func (v *Voice) Skip(n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.end += n
	v.tail, v.own = v.tail[:0], ownLines{}
}

// heard returns the number of bytes so far.
func (v *Voice) heard() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.end
}

// Waiting returns the number of bytes that wait.
func (v *Voice) Waiting() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.head) + len(v.tail)
}

// keep adds output to the head or to the tail. The caller holds mu.
func (v *Voice) keep(p []byte) {
	if len(v.head) == 0 || len(v.tail) == 0 && v.headEnd == v.end {
		room := min(len(p), v.part-len(v.head))
		v.head = append(v.head, p[:room]...)
		v.headEnd = v.end + int64(room)
		p = p[room:]
	}
	if over := len(p) - v.part; over > 0 {
		v.tail, p = v.tail[:0], p[over:]
	}
	v.tail = append(v.tail, p...)
	// The tail is cut seldom: otherwise each of many small pieces would copy all of it.
	if over := len(v.tail) - v.part; over > v.part {
		v.tail = v.tail[:copy(v.tail, v.tail[over:])]
	}
}

// said compares the voice with the size of the transcript. If they differ, the voice falls silent,
// because the positions of its output would be wrong.
func (v *Voice) said(size int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mute = v.mute || v.end != size
}

// Silence ends the live output of the attempt.
func (v *Voice) Silence() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mute = true
}

// Speeches takes the waiting output: nothing, or one speech, or two with a gap between them.
func (v *Voice) Speeches() []jobs.Speech {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mute || len(v.head) == 0 {
		return nil
	}
	head, tail, end := v.head, v.tail[max(len(v.tail)-v.part, 0):], v.headEnd
	v.head, v.tail = nil, nil
	if end+int64(len(tail)) == v.end {
		head, tail, end = append(head, tail...), nil, v.end
	}
	list := []jobs.Speech{v.speech(head, end)}
	if len(tail) > 0 {
		list = append(list, v.speech(tail, v.end))
	}
	return list
}

// speech returns a speech. The caller holds mu.
func (v *Voice) speech(data []byte, end int64) jobs.Speech {
	return jobs.Speech{Job: v.job, Token: v.token, End: end, Data: data, Runs: v.runs,
		Drop: v.spent.add(end, len(data), v.half)}
}

// spent counts the speeches that were made and can still be read.
type spent struct {
	head  int // the bytes of the first speeches, which stay
	tail  []spentSpeech
	bytes int // the bytes in tail
}

type spentSpeech struct {
	end  int64
	size int
}

// add notes a speech. It returns the ends of the older speeches to drop, so that a head and a tail
// stay, each of at most half bytes.
func (s *spent) add(end int64, size, half int) (drop []int64) {
	if len(s.tail) == 0 && s.head+size <= half {
		s.head += size
		return nil
	}
	s.tail = append(s.tail, spentSpeech{end, size})
	s.bytes += size
	for len(s.tail) > 1 && (s.bytes > half || len(s.tail) > speechesKept) {
		drop = append(drop, s.tail[0].end)
		s.bytes -= s.tail[0].size
		s.tail = s.tail[1:]
	}
	return drop
}
