package remote_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// This test is a model of record.sh: what attempts do on a host, line by line, as far as
// it matters who comes in between. It walks through every interleaving of them, with an
// attempt, or the host, dying at every line, and holds what must be true in every state.
// Without one of lock, token, started line or forbidding look something of that breaks.

// An at says which line of record.sh an attempt does next.
type at string

const (
	takeLock  at = "take lock"
	look      at = "look at the record" // under the lock, or without it
	write     at = "write started"
	effect    at = "effect"
	writeEnd  at = "write end"
	giveBack  at = "give lock back"
	forbid    at = "forbid older"
	finished  at = "finished"    // knows how it went: a result
	began     at = "looks later" // saw that it runs: looks again
	refused   at = "refused"     // stale or busy: nothing of it ran
	neverRan  at = "never ran"   // said so for good
	doubt     at = "unknown"
	died      at = "died"
	asleep    at = "not there yet"
	commanded at = "its command runs on alone"
)

// A player is one attempt.
type player struct {
	job, token int
	asks       bool // only looks, as in a halt
	at         at
	locked     bool // holds the lock
}

// A disk is what is durable on the host.
type disk struct {
	started map[int]int // job to token
	ended   map[int]bool
	last    int // the highest token
}

// A world is a state of all of it.
type world struct {
	players [3]player
	disk    disk
	effects map[int]int // job to how often its command was begun
	order   []int       // tokens whose commands were begun
}

// rules are the safeguards of record.sh; the test can leave out each of them.
type rules struct{ lock, token, started, forbid bool }

func (w world) clone() world {
	w.disk.started, w.disk.ended = cloneMap(w.disk.started), cloneMap(w.disk.ended)
	w.effects, w.order = cloneMap(w.effects), slices.Clone(w.order)
	return w
}

func cloneMap[V any](m map[int]V) map[int]V {
	out := map[int]V{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func (w world) key() string { return fmt.Sprint(w) }

// held reports whether the lock is held, by an attempt or by a command that outlived it.
func (w world) held() bool {
	return slices.ContainsFunc(w.players[:], func(p player) bool { return p.locked })
}

// inside counts the commands that run at this moment.
func (w world) inside() (n int) {
	for _, p := range w.players {
		if p.at == writeEnd || p.at == commanded {
			n++
		}
	}
	return n
}

// steps are all that can happen next.
func (w world) steps(r rules) (next []world) {
	for i, p := range w.players {
		switch p.at {
		case finished, refused, neverRan, doubt, died:
			continue
		case asleep:
			next = append(next, w.with(i, takeLock))
			continue
		case commanded:
			// The watcher was killed: the command ends by itself, and nobody writes that down.
			v := w.with(i, died)
			v.players[i].locked = false
			next = append(next, v)
			continue
		}
		next = append(next, w.moves(i, r)...)
		// It is killed here. A command that it began runs on, with the lock.
		v := w.with(i, died)
		v.players[i].locked = false
		if p.at == writeEnd {
			v.players[i].at, v.players[i].locked = commanded, p.locked
		}
		next = append(next, v)
	}
	return append(next, w.reboot())
}

// reboot ends all that runs; the disk stays.
func (w world) reboot() world {
	v := w.clone()
	for i := range v.players {
		if p := &v.players[i]; p.at != asleep && !over(p.at) {
			p.at, p.locked = died, false
		}
	}
	return v
}

func over(a at) bool {
	return a == finished || a == refused || a == neverRan || a == doubt || a == died
}

func (w world) with(i int, a at) world {
	v := w.clone()
	v.players[i].at = a
	return v
}

// moves is the next line of one attempt.
func (w world) moves(i int, r rules) []world {
	p := w.players[i]
	switch p.at {
	case takeLock:
		v := w.with(i, look)
		v.players[i].locked = !r.lock || !w.held()
		return []world{v}
	case look:
		return w.look(i, r)
	case write:
		v := w.with(i, effect)
		v.disk.last = max(v.disk.last, p.token)
		if r.started {
			v.disk.started[p.job] = p.token
		}
		return []world{v}
	case effect:
		v := w.with(i, writeEnd)
		v.effects[p.job]++
		v.order = append(v.order, p.token)
		return []world{v}
	case writeEnd:
		v := w.with(i, giveBack)
		if r.started {
			v.disk.ended[p.job] = true
		}
		return []world{v}
	case forbid:
		v := w.with(i, neverRan)
		if r.forbid {
			v.disk.last = max(v.disk.last, p.token)
		}
		v.players[i].locked = false
		return []world{v}
	case giveBack:
		v := w.with(i, finished)
		v.players[i].locked = false
		return []world{v}
	case began:
		v := w.with(i, takeLock)
		return []world{v}
	}
	panic("a line that is none: " + p.at)
}

// look decides as record.sh does.
func (w world) look(i int, r rules) []world {
	p := w.players[i]
	answer := func(a at) []world {
		v := w.with(i, a)
		v.players[i].locked = false
		return []world{v}
	}
	token, known := w.disk.started[p.job]
	switch {
	case known && r.token && p.token < token:
		return answer(refused)
	case known && w.disk.ended[p.job]:
		return answer(finished)
	case known && !p.locked:
		return answer(began) // it is followed
	case known:
		return answer(doubt)
	case !p.locked:
		return answer(refused) // busy
	case r.token && p.token < w.disk.last:
		return answer(refused)
	case p.asks:
		return []world{w.with(i, forbid)}
	}
	return []world{w.with(i, write)}
}

// broken returns the property that a state violates, or "".
func (w world) broken() string {
	if w.inside() > 1 {
		return "overlap"
	}
	for job, n := range w.effects {
		if n > 1 {
			return "twice"
		}
		for _, p := range w.players {
			if p.job == job && p.at == neverRan {
				return "denied" // somebody said that it never ran
			}
		}
	}
	for _, p := range w.players {
		if p.at == finished && w.effects[p.job] == 0 {
			return "invented"
		}
	}
	if !slices.IsSorted(w.order) {
		return "stale"
	}
	return ""
}

// walk visits every state once, and returns what broke and how many states there are.
func walk(first world, r rules) (broken map[string]bool, states int) {
	broken = map[string]bool{}
	seen, todo := map[string]bool{first.key(): true}, []world{first}
	for len(todo) > 0 {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if what := w.broken(); what != "" {
			broken[what] = true
			continue // what comes after it is no news
		}
		for _, v := range w.steps(r) {
			if k := v.key(); !seen[k] {
				seen[k] = true
				todo = append(todo, v)
			}
		}
	}
	return broken, len(seen)
}

func TestTheLogicOfTheRecord(t *testing.T) {
	t.Parallel()
	// Two attempts at a job, and one of a job that came in between: as after a lost lock.
	players := map[string][3]player{
		"two attempts and another job": {{job: 1, token: 1}, {job: 1, token: 3}, {job: 2, token: 2}},
		"three attempts at a job":      {{job: 1, token: 1}, {job: 1, token: 2}, {job: 1, token: 3}},
		"one looks":                    {{job: 1, token: 1}, {job: 1, token: 2, asks: true}, {job: 2, token: 3}},
	}
	all := rules{lock: true, token: true, started: true, forbid: true}
	for _, test := range []struct {
		name   string
		rules  rules
		breaks string // what must break in one of the cases, in order; empty: nothing
	}{
		{"as it is", all, ""},
		{"without the lock", rules{token: true, started: true, forbid: true}, "overlap twice"},
		{"without tokens", rules{lock: true, started: true, forbid: true}, "denied stale"},
		{"without the started line", rules{lock: true, token: true, forbid: true}, "twice"},
		{"without a look that forbids", rules{lock: true, token: true, started: true}, "denied"},
		{"tokens alone", rules{token: true}, "overlap"},
	} {
		broken, states := map[string]bool{}, 0
		for name, list := range players {
			first := world{players: list, disk: disk{map[int]int{}, map[int]bool{}, 0}, effects: map[int]int{}}
			for i := range first.players {
				first.players[i].at = asleep
			}
			b, n := walk(first, test.rules)
			states += n
			for what := range b {
				broken[what] = true
				if test.breaks == "" {
					t.Errorf("%s, %s: %s", test.name, name, what)
				}
			}
		}
		t.Logf("%s: %d states, broken: %v", test.name, states, broken)
		for _, what := range strings.Fields(test.breaks) {
			if !broken[what] {
				t.Errorf("%s: nothing breaks %q: the model does not see what it is for", test.name, what)
			}
		}
		if test.breaks == "" && states < 1000 {
			t.Errorf("only %d states: that is no model of anything", states)
		}
	}
}
