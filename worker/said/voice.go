package said

import (
	"sync"
	"time"

	"muster/jobs"
)

const (
	// SpeechMax bounds what of a voice waits to be passed on: so much of what came
	// first, and as much of what came last.
	SpeechMax = 16 << 10 // bytes

	// speechesKept bounds how many speeches of an attempt are kept for those who come
	// to listen later.
	speechesKept = 500
)

// A Voice is what a host says in a running attempt, on its way to those who listen.
// It is lossy by choice: what is not fetched in time is left out, and never waited
// for. The result of the attempt has all that is kept.
type Voice struct {
	job   jobs.ID
	token jobs.Token
	part  int           // bytes that wait at most, of the head and of the tail
	half  int           // bytes that stay readable, likewise
	Turn  time.Duration // when it last had its turn, on the boot clock; the clerk's

	mu      sync.Mutex // guards what follows
	end     int64      // bytes said so far
	head    []byte     // what came first since the last speech
	headEnd int64      // and where it ended
	tail    []byte     // what came behind it, or the end of that
	mute    bool       // nothing more is passed on
	spent   spent
	runs    jobs.Runs
	own     ownLines
}

// NewVoice returns the voice of an attempt whose output is kept up to so many bytes.
func NewVoice(g jobs.Grant, outputMax int) *Voice {
	return &Voice{job: g.Job, token: g.Token, part: min(SpeechMax, outputMax/4), half: outputMax / 2}
}

// Write takes what the host says. It never waits and never fails.
func (v *Voice) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.take(v.own.spare(p))
	return len(p), nil
}

func (v *Voice) take(p []byte) {
	if !v.mute {
		v.keep(p)
	}
	v.end += int64(len(p))
}

// tell takes a line of our own, and what is known of runs with it.
func (v *Voice) tell(line string, runs jobs.Runs) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if line != "" {
		v.own = ownLines{}
	}
	v.take([]byte(line))
	v.runs = runs
}

// Skip notes that bytes are lost, before anybody could hear them.
func (v *Voice) Skip(n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.end += n
	v.tail, v.own = v.tail[:0], ownLines{}
}

// heard returns the number of bytes that were said so far.
func (v *Voice) heard() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.end
}

// Waiting returns how many bytes wait to be passed on.
func (v *Voice) Waiting() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.head) + len(v.tail)
}

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
	// Cut seldom, or a flood of small pieces is copied again and again.
	if over := len(v.tail) - v.part; over > v.part {
		v.tail = v.tail[:copy(v.tail, v.tail[over:])]
	}
}

// said compares the voice with the size of the transcript. If something else was
// heard the voice falls silent: nothing that it says would be in its place.
func (v *Voice) said(size int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mute = v.mute || v.end != size
}

// Silence lets it say nothing more.
func (v *Voice) Silence() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mute = true
}

// Speeches takes what waits: nothing, or one speech, or two with a gap between them.
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

func (v *Voice) speech(data []byte, end int64) jobs.Speech {
	return jobs.Speech{Job: v.job, Token: v.token, End: end, Data: data, Runs: v.runs,
		Drop: v.spent.add(end, len(data), v.half)}
}

// spent are the speeches that were made and can be read still.
type spent struct {
	head  int // bytes of those that stay
	tail  []spentSpeech
	bytes int // in tail
}

type spentSpeech struct {
	end  int64
	size int
}

// add notes a speech. It returns the ends of those that are too many with it: head
// and tail stay, each of so many bytes.
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
