package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// This file is the memory of fleet/remote/record.sh: the data of its files, and its decisions. The
// names are the same; a test compares the two.

// records holds the records of a machine's steps.
type records struct {
	mu      sync.Mutex
	born    *birth
	swept   int64
	all     []*stepRecord // in the order of their names
	running *stepRecord   // has the lock
	marker  []string      // the words of the marker; nil: there is none
}

// birth says since when there are records, and which job began them.
type birth struct {
	token int64
	first string
}

// stepRecord is the record of one step.
type stepRecord struct {
	token       int64
	key, step   string
	boot, who   string
	began       int64 // uptime, in seconds
	limit       int64
	said        transcript
	run         *process      // its process; nil: none runs
	ended       chan struct{} // closed when its end is known
	drained     chan struct{} // closed when no more output can follow
	how         string        // valid after ended, as the following code
	code        int
	stop        bool // a client wanted it to stop; guarded by records.mu
	interrupted bool // the machine went down; guarded by records.mu
}

func newStep(token int64, key, step string) *stepRecord {
	return &stepRecord{token: token, key: key, step: step, ended: make(chan struct{}),
		drained: make(chan struct{})}
}

func (r *stepRecord) name() string { return fmt.Sprintf("%018d.%s.%s", r.token, r.key, r.step) }

func (r *stepRecord) over() bool { return isClosed(r.ended) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// alive reports whether a process of it runs.
func (r *stepRecord) alive() bool { return r.run != nil && !r.interrupted }

// crash ends all running steps without noting an end.
func (r *records) crash() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running != nil {
		r.running.interrupted = true
		r.running = nil
	}
}

// newest returns the record with the last name, of a step or of all; nil: there is none.
func (r *records) newest(key, step string) *stepRecord {
	for _, s := range slices.Backward(r.all) {
		if key == "" || s.key == key && s.step == step {
			return s
		}
	}
	return nil
}

func (r *records) add(s *stepRecord) {
	i, _ := slices.BinarySearchFunc(r.all, s, func(a, b *stepRecord) int {
		return strings.Compare(a.name(), b.name())
	})
	r.all = slices.Insert(r.all, i, s)
}

// settle checks that there is a place for records; verbs that begin a step make one.
func (r *records) settle(q request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.born == nil {
		if q.verb != "run" && q.verb != "put" {
			return false
		}
		r.born = &birth{q.token, q.key}
		if q.again {
			r.born.first = "-"
		}
	}
	return true
}

// A verdict is the answer to a request: a refusal with some words, or an action on a record. A
// verdict without either waits for the running step.
type verdict struct {
	no   string
	do   deed
	step *stepRecord
}

type deed string

const (
	doStart     deed = "start"
	doAccompany deed = "accompany"
	doConclude  deed = "conclude"
	doForbid    deed = "forbid"
)

// decide returns the answer. up is the uptime in seconds.
func (r *records) decide(q request, up int64) verdict {
	latest, mine := r.newest("", ""), r.newest(q.key, q.step)
	switch {
	case mine != nil:
		return r.known(q, up, mine)
	case r.running == nil:
		return r.unknown(q, up)
	case !latest.over():
		return busy(latest, up)
	}
	return verdict{}
}

// known decides about a step that has a record.
func (r *records) known(q request, up int64, mine *stepRecord) verdict {
	free := r.running == nil
	switch {
	case q.token < mine.token:
		return verdict{no: "stale"}
	case mine.over():
		return verdict{do: doConclude, step: mine}
	case !free && mine == r.newest("", "") || mine.alive():
		if q.verb == "look" || q.verb == "peek" {
			return verdict{no: fmt.Sprintf("work %d", mine.began+mine.limit-up)}
		}
		return verdict{do: doAccompany, step: mine}
	case !free:
		return verdict{}
	case q.verb == "run" && q.twice && mine.token != q.token:
		if v, ok := r.clean(q, up); !ok {
			return v
		}
		return r.start(q, up)
	}
	return verdict{do: doConclude, step: mine}
}

// unknown decides about a step without a record, with the lock held.
func (r *records) unknown(q request, up int64) verdict {
	if v, ok := r.clean(q, up); !ok {
		return v
	}
	if !r.proof(q) && !(q.twice && q.verb == "run") {
		return verdict{no: "untold"}
	}
	switch q.verb {
	case "run":
		return r.start(q, up)
	case "peek":
		return verdict{no: "never"}
	}
	return verdict{do: doForbid}
}

// clean refuses requests that come too late or too early.
func (r *records) clean(q request, up int64) (verdict, bool) {
	latest := r.newest("", "")
	switch {
	case latest == nil:
	case q.token < latest.token:
		return verdict{no: "stale"}, false
	case !latest.over() && latest.alive():
		return busy(latest, up), false
	}
	return verdict{}, true
}

// weekOf is a week in the first halves of tokens.
const weekOf, dayOf = 604, 86

// proof reports whether a missing record shows that the step never ran.
func (r *records) proof(q request) bool {
	switch {
	case !q.again:
		return true
	case r.swept-q.since/1e9 > weekOf:
		return false
	case r.born.first == q.key:
		return true
	}
	step, _ := strconv.Atoi(q.step) // digits
	return q.since >= r.born.token || slices.ContainsFunc(r.all, func(s *stepRecord) bool {
		n, _ := strconv.Atoi(s.step) // a thousand more means a later try of a step
		return s.key == q.key && n%1000 < step%1000
	})
}

func (r *records) start(q request, up int64) verdict {
	if m := r.marker; q.marks && m != nil && m[0] != q.key && q.token < tokenOf(m[1], m[2]) {
		return verdict{no: "marked " + m[7]}
	}
	s := newStep(q.token, q.key, q.step)
	s.who, s.began, s.limit = q.job, up, q.limit
	return verdict{do: doStart, step: s}
}

func busy(s *stepRecord, up int64) verdict {
	return verdict{no: fmt.Sprintf("busy %d %s", s.began+s.limit-up, s.who)}
}

// sign notes a token: a request with an older one then comes too late.
func (r *records) sign(token int64) {
	s := newStep(token, "-", "-")
	close(s.ended)
	close(s.drained)
	if !slices.ContainsFunc(r.all, func(o *stepRecord) bool { return o.name() == s.name() }) {
		r.add(s)
	}
}

// sweep removes steps that ended more than a week ago, by the clock that makes tokens, once a day.
func (r *records) sweep(token int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := token / 1e9
	if now-r.swept < dayOf {
		return
	}
	r.swept = now
	r.all = slices.DeleteFunc(r.all, func(s *stepRecord) bool {
		return s.over() && now-s.token/1e9 > weekOf
	})
}

// transcript is the output of a step: the head and two pieces of the tail.
type transcript struct {
	mu     sync.Mutex
	size   int64
	pieces []piece
	more   chan struct{} // closed and replaced when there is more output; nil: nobody waits
}

type piece struct {
	at   int64
	data []byte
}

// pieceMax is the size at which a piece stops to grow.
const pieceMax = 128 << 10

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.pieces); n == 0 || len(t.pieces[n-1].data) >= pieceMax {
		if n > 2 {
			t.pieces = slices.Delete(t.pieces, 1, n-1)
		}
		t.pieces = append(t.pieces, piece{at: t.size})
	}
	last := &t.pieces[len(t.pieces)-1]
	last.data = append(last.data, b...)
	t.size += int64(len(b))
	if t.more != nil {
		close(t.more)
		t.more = nil
	}
	return len(b), nil
}

// from returns the stored output from a byte on, and where it begins; more is closed when there is
// more.
func (t *transcript) from(off int64) (rest []piece, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.pieces {
		if end := p.at + int64(len(p.data)); end > off {
			from := max(off, p.at)
			rest = append(rest, piece{from, slices.Clone(p.data[from-p.at:])})
		}
	}
	if t.more == nil {
		t.more = make(chan struct{})
	}
	return rest, t.more
}

// afterEnd bounds the wait of a follower for the last output of a step.
const afterEnd = time.Second
