package fakefleet

import (
	"slices"
	"strings"
	"sync"
	"time"

	"muster/internal/fakefleet/machine"
)

// Entry is one command as its host saw it. It starts with the request and ends when the last
// process of the command has ended, even if nobody listens.
type Entry struct {
	Number   int       // counts all commands of the fleet from 1, in order of their start
	Host     string    // its name
	Command  string    // the first 1,024 bytes
	Start    time.Time //
	End      time.Time // zero while it runs
	Exit     int       // the exit status, if Signal is empty
	Signal   string    // TERM, KILL, PIPE…: what ended it instead of an exit
	TimedOut bool      // its timeout ended it, or a part of it
	Orphaned bool      // its connection or channel was gone before it ended
	Stops    bool      // it stops another command or asks about one: it overlaps with none
}

// Running says that the command has not ended yet.
func (e Entry) Running() bool { return e.End.IsZero() }

// Overlap says that a command started inside a host while another one ran there.
type Overlap struct {
	Host          string
	First, Second Entry // in their state when the second started
}

// Stats counts what the fleet has seen.
type Stats struct {
	Connections int // accepted, without those of Refuse, which nobody sees
	Logins      int // handshakes that ended with a login
	Commands    int // started
	Running     int // now
	Orphaned    int // commands whose connection ended before them, so far
	TimedOut    int // ended by their timeout
	Overlaps    int // pairs, also those that Overlaps has no room for
	Unlogged    int // commands that did not fit into Log
}

// Log returns the commands, in the order of their starts. It is bounded by Config.LogEntries; Stats
// and Overlaps count all.
func (f *Fleet) Log() []Entry {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	entries := make([]Entry, len(f.log.records))
	for i, r := range f.log.records {
		entries[i] = r.Entry
	}
	return entries
}

// Stats returns the counts of this moment.
func (f *Fleet) Stats() Stats {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.log.stats
}

// Overlaps returns every pair of commands that were inside one host at the same
// time, at most the first 10,000. An orphaned command counts until it ends.
func (f *Fleet) Overlaps() []Overlap {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return slices.Clone(f.log.overlaps)
}

const (
	overlapsMax = 10_000 // some are enough to see the fault
	commandMax  = 1024   // bytes of a command in the log: 500 MB at the most with 500,000
)

// journal is the memory of all hosts. One lock is enough: it is held for less
// than a microsecond, and a command costs a handshake.
type journal struct {
	mu       sync.Mutex
	records  []*record
	overlaps []Overlap
	stats    Stats
	max      int
	watch    func(Entry)
}

// record is an entry that can still change.
type record struct{ Entry }

func newJournal(c Config) *journal {
	j := &journal{max: c.LogEntries, watch: c.Watch}
	if j.watch == nil {
		j.watch = func(Entry) {}
	}
	return j
}

func (j *journal) count(change func(s *Stats)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.stats)
}

// begin notes that a command is inside a host from now on, and compares it with the commands that
// are there already.
func (j *journal) begin(h *host, command string) *record {
	r := &record{Entry{Host: h.name, Command: shortened(command), Start: time.Now(),
		Stops: machine.Looks(command)}}
	j.watch(j.enter(h, r))
	return r
}

func (j *journal) enter(h *host, r *record) Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.Commands++
	j.stats.Running++
	r.Number = j.stats.Commands
	j.compare(h, r)
	h.running = append(h.running, r)
	if len(j.records) < j.max {
		j.records = append(j.records, r)
	} else {
		j.stats.Unlogged++
	}
	return r.Entry
}

// compare compares a command with those inside its host. The lock is held.
func (j *journal) compare(h *host, r *record) {
	for _, other := range h.running {
		if r == other || r.Stops || other.Stops {
			continue
		}
		j.stats.Overlaps++
		if len(j.overlaps) < overlapsMax {
			j.overlaps = append(j.overlaps, Overlap{h.name, other.Entry, r.Entry})
		}
	}
}

// works notes that a command which only asked until now begins a step of which the host keeps a
// record.
func (j *journal) works(h *host, r *record, command string) {
	j.mu.Lock()
	r.Stops, r.Command = false, shortened(command)
	j.compare(h, r)
	e := r.Entry
	j.mu.Unlock()
	j.watch(e)
}

// orphan notes that nobody listens to a command any more.
func (j *journal) orphan(r *record) {
	if e, running := j.abandon(r); running {
		j.watch(e)
	}
}

func (j *journal) abandon(r *record) (e Entry, running bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.Running() {
		r.Orphaned = true
		j.stats.Orphaned++
	}
	return r.Entry, r.Running()
}

// end notes that no process of a command is inside its host any more.
func (j *journal) end(h *host, r *record, how machine.Result) {
	j.watch(j.leave(h, r, how))
}

func (j *journal) leave(h *host, r *record, how machine.Result) Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.End = time.Now()
	r.Exit, r.Signal, r.TimedOut = how.Code, how.Signal, how.TimedOut
	j.stats.Running--
	if r.TimedOut {
		j.stats.TimedOut++
	}
	h.running = slices.DeleteFunc(h.running, func(o *record) bool { return o == r })
	return r.Entry
}

// shortened copies the part that it keeps, or the log would hold whole packets.
func shortened(command string) string {
	if len(command) > commandMax {
		return command[:commandMax] + "…"
	}
	return strings.Clone(command)
}
