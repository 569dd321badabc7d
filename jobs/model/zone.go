package model

import (
	"maps"
	"slices"
	"time"

	"muster/jobs"
	"muster/jobs/quarantine"
)

// Zone holds all that Redis keeps of a zone; see docs/REDIS.md.
type Zone struct {
	Flags     Flags
	Customers map[string]Switch      // the paused ones
	Children  map[string]jobs.Micros // "node/slot" to the epoch in which it last called

	Queue, Again *Set[jobs.ID]
	Held         sets[jobs.TaskID, jobs.ID]
	Lists
	Jobs  map[jobs.ID]*Job
	Tasks map[jobs.TaskID]*Task
	Locks map[string]Lock // by host; also locks that have expired

	Reordering Reordering
	Semaphores Semaphores
	Traits     map[string]map[string]Traits // inventory to host
	Hold       map[string]map[string]Hold   // node to slot
	Events     []Event
}

// Ends counts the ended jobs and tasks of a zone.
type Ends struct {
	Jobs  map[jobs.Outcome]int
	Tasks int // a task of several zones counts in each
}

// NoEnds returns the Ends of a new zone.
func NoEnds() Ends { return Ends{Jobs: map[jobs.Outcome]int{}} }

// Lists holds tasks with work left for later calls.
type Lists struct {
	Parked   map[jobs.TaskID]bool // a take has moved jobs of them aside
	Rollouts map[jobs.TaskID]bool // they have a rule, and have not ended
	Asking   Asking
}

// Asking holds the jobs that ended unknown, and whose hosts are to be asked.
type Asking struct {
	Due *Set[jobs.ID]
	Any bool // there may be some
}

// Flags are the fields of the key zone. Without a Run the zone does not exist.
type Flags struct {
	Run         string
	Epoch, Born jobs.Micros
	Freeze      Freeze
	High, Token jobs.Micros // highest TIME seen, last token
	Longest     time.Duration
	Turn        int
	Waits       jobs.Micros // when a job last began to wait for a host
	Halted      Switch
	Paused      Switch
	Lifted      int64       // id of the last lift
	Jumped      jobs.Micros // when a jump of TIME was last noted
	Recorded    bool        // history is stored for it
	Owed        string      // since when and why history must be asked before anything starts
}

// shut reports whether nothing may start.
func (f Flags) shut(now jobs.Micros) bool { return f.Owed != "" || f.Freeze.Until > now }

// Reordering is the state of the reordering of an overloaded queue.
type Reordering struct {
	Open    *Set[jobs.TaskID] // tasks that have not ended
	Ends    Ends              // the ends of tasks count as changes too
	Changes int               // tasks that ended, and jobs that returned
	Seen    int               // Changes at the last walk
	Walked  jobs.Micros       // jobs that were due then are in order
	Last    string            // for people
	Lock    string            // token of the walk, or "cool"
	Until   jobs.Micros       // when the lock ends
}

// Freeze stops all takes until an instant. It ends sooner, but not before Soonest, once all
// children have reported, unless it is Strict.
type Freeze struct {
	Until, Soonest jobs.Micros
	Why            string
	Strict         bool
}

// Switch is a pause by an operator. Without a note there is none.
type Switch struct {
	Note string
	At   jobs.Micros
	ID   int64 // id of the order
}

// later reports whether the pause was ordered after the order upTo; an upTo less than 0 is later
// than all.
func (s Switch) later(upTo int64) bool { return upTo >= 0 && s.ID > upTo }

// again repeats a pause that is in force: it becomes a pause by the last order.
func (s Switch) again(order int64) (last Switch, again bool) {
	last = Switch{s.Note, s.At, order}
	return last, s.Note != "" && order > s.ID
}

// Task is a zone's part of a task.
type Task struct {
	Print string
	Head  Head
	Times
	Chunks        map[int][]string // hosts of each
	Paused        Switch
	Cancel        string
	By            jobs.TaskID // the task that supersedes it
	Running, Done int
	Outcomes      map[jobs.Outcome]int
	Answers
	Rolling
	Unproven map[string]string // group to the member that did not succeed
	// instant to the number of jobs that were deferred to it before they began
	Turns   map[jobs.Micros]int
	Expires jobs.Micros // when it is forgotten; 0: never
}

// Answers holds the answers of people and hosts for a task.
type Answers struct {
	Gates map[string]string // step and host, with : between, to the answer
	Asks  map[string]Order  // by host: the order to ask how its job ended
}

// Times holds the instants of a task; 0: not yet.
type Times struct {
	Committed, Due, Expiry, Started, Ended jobs.Micros
	Shifted                                jobs.Micros // beginning of the last pause that counted
}

// Head comes with the first chunk of a task.
type Head struct {
	Spec       jobs.Spec
	Total      int // jobs in this zone
	Chunks     int // of their hosts
	At         jobs.Micros
	Guarded    bool
	Quarantine quarantine.Kind
}

// Job is the record of a job that was taken once, or ended.
type Job struct {
	State   jobs.State
	Token   jobs.Token
	Counts  Counts
	Step    int
	Saved   string
	Due     jobs.Micros
	Node    string
	Later   time.Duration // its expiry is so much later than that of its task
	Started jobs.Micros
	Lost    bool // the attempt in hand examines an earlier, lost one
	// Verify, or Waiting with its host: the state to restore if the attempt in hand is returned.
	Was    jobs.State
	Cancel string // who and why
	Spent  string // a ledger of its time
	Why    string // why it was deferred, waits, or is retried
	End    End
}

// Counts holds the four counters of a job.
type Counts struct{ Attempt, Tries, Probes, Crashes int }

// End describes how a job ended.
type End struct {
	At      jobs.Micros
	Outcome jobs.Outcome
	Class   jobs.Class
	Exit    string
	Error   string
	Note    string
	Spent   string
}

// Lock names the one attempt that may act on a host.
type Lock struct {
	Token jobs.Token
	Job   jobs.ID
	Until jobs.Micros
}

// Traits are the facts about a host that the scripts know.
type Traits struct {
	Customer, Group string // "-": none
	Limits          []string
}

// Semaphores holds the groups and limits of a zone, and the waiters.
type Semaphores struct {
	Holders map[string]map[string]string // semaphore to job, or frozen, to token or why
	Index   map[string]bool              // those with holders
	Max     map[string]int
	// Waits has jobs by host/<host> and <semaphore>:<task>, and tasks by <semaphore>.
	Waits sets[string, string]
	Aside quarantine.Hosts // they take only checks
}

// Hold is the result of the last call of a slot.
type Hold struct {
	Request string
	Sent    jobs.Micros
	Status  jobs.Status
	Next    jobs.Micros
	Late    []jobs.ID
	Jobs    map[jobs.ID]jobs.Token // in hand
	Grants  []jobs.Grant
}

// Event is an event of a job, a task, a group or the zone.
type Event struct{ Name, Object string }

// New returns a zone that does not exist yet.
func New() *Zone {
	return &Zone{
		Customers: map[string]Switch{}, Children: map[string]jobs.Micros{},
		Queue: &Set[jobs.ID]{}, Again: &Set[jobs.ID]{}, Held: sets[jobs.TaskID, jobs.ID]{},
		Lists: Lists{map[jobs.TaskID]bool{}, map[jobs.TaskID]bool{}, Asking{Due: &Set[jobs.ID]{}}},
		Jobs:  map[jobs.ID]*Job{}, Tasks: map[jobs.TaskID]*Task{},
		Locks: map[string]Lock{},
		Semaphores: Semaphores{Holders: map[string]map[string]string{}, Index: map[string]bool{},
			Max: map[string]int{}, Waits: sets[string, string]{}, Aside: quarantine.Hosts{}},
		Reordering: Reordering{Open: &Set[jobs.TaskID]{}, Ends: NoEnds()},
		Traits:     map[string]map[string]Traits{}, Hold: map[string]map[string]Hold{},
	}
}

// Clone returns a copy that shares no changing data with the zone.
func (z *Zone) Clone() *Zone {
	c := *z
	c.Customers, c.Children = maps.Clone(z.Customers), maps.Clone(z.Children)
	c.Queue, c.Again, c.Held = z.Queue.clone(), z.Again.clone(), z.Held.clone()
	c.Asking.Due = z.Asking.Due.clone()
	c.Reordering.Open = z.Reordering.Open.clone()
	c.Reordering.Ends.Jobs = maps.Clone(z.Reordering.Ends.Jobs)
	c.Parked, c.Locks, c.Traits = maps.Clone(z.Parked), maps.Clone(z.Locks), maps.Clone(z.Traits)
	c.Rollouts = maps.Clone(z.Rollouts)
	c.Jobs = make(map[jobs.ID]*Job, len(z.Jobs))
	for id, j := range z.Jobs {
		c.Jobs[id] = new(*j)
	}
	c.Tasks = make(map[jobs.TaskID]*Task, len(z.Tasks))
	for id, t := range z.Tasks {
		copied := *t
		copied.Chunks, copied.Outcomes = maps.Clone(t.Chunks), maps.Clone(t.Outcomes)
		copied.Gates, copied.Asks = maps.Clone(t.Gates), maps.Clone(t.Asks)
		c.Tasks[id] = &copied
	}
	s := &z.Semaphores
	c.Semaphores = Semaphores{Index: maps.Clone(s.Index), Max: maps.Clone(s.Max),
		Aside: maps.Clone(s.Aside),
		Waits: s.Waits.clone(), Holders: make(map[string]map[string]string, len(s.Holders))}
	for name, holders := range s.Holders {
		c.Semaphores.Holders[name] = maps.Clone(holders)
	}
	c.Hold = make(map[string]map[string]Hold, len(z.Hold))
	for node, slots := range z.Hold {
		c.Hold[node] = maps.Clone(slots)
	}
	c.Events = slices.Clip(z.Events)
	return &c
}

// expire deletes what has expired, by the clock as it was read.
func (z *Zone) expire(now jobs.Micros) {
	gone := func(t *Task) bool { return t != nil && t.Expires != 0 && t.Expires <= now }
	maps.DeleteFunc(z.Jobs, func(id jobs.ID, _ *Job) bool { return gone(z.Tasks[id.Task()]) })
	maps.DeleteFunc(z.Tasks, func(_ jobs.TaskID, t *Task) bool { return gone(t) })
	if r := &z.Reordering; r.Until <= now {
		r.Lock, r.Until = "", 0
	}
	z.Held.drop(now)
	z.Semaphores.Waits.drop(now)
}
