package jobs

// Switch names what an operator pauses and resumes: a task, a customer, a zone, or everything.
type Switch string

// The switches.
const (
	SwitchTask     Switch = "task"
	SwitchCustomer Switch = "customer"
	SwitchZone     Switch = "zone"
	SwitchAll      Switch = "all" // everything: a halt
)

// Switched is the effect of a pause, a halt or a resume.
type Switched struct {
	What    Switch `json:"what"`
	Name    string `json:"name,omitempty"` // name of the task, customer or zone
	Paused  bool   `json:"paused"`         // the state now
	Already bool   `json:"already"`        // the state was the same before; nothing changed
	// Overtaken: a later order reached a zone first, and stays in force. Paused and Note belong to
	// it.
	Overtaken bool   `json:"overtaken,omitempty"`
	Ended     bool   `json:"ended,omitempty"` // the task has ended, so it cannot be paused
	Note      string `json:"note"`            // who and why, of the order in force
	Moved     int    `json:"moved"`           // jobs that were moved out of the queue, or back
	// running: a pause lets them end, a halt stops after the step
	Running int      `json:"running"`
	Zones   []string `json:"zones"`   // zones that have confirmed
	Missing []string `json:"missing"` // did not answer; a server repeats the order
}

// Pauses lists the pauses and the halt that operators ordered.
type Pauses struct {
	Halted    string            `json:"halted,omitempty"` // who and why; empty: no halt
	Zones     map[string]string `json:"zones"`            // who and why, by paused zone
	Customers map[string]string `json:"customers"`        // who and why, by paused customer
}

// Group is a redundancy group that is in use or frozen.
type Group struct {
	Name   string   `json:"name"`
	Zone   string   `json:"zone"`
	Frozen string   `json:"frozen,omitempty"` // why it is frozen; empty: it is not
	Job    ID       `json:"job,omitempty"`    // the job whose unknown outcome froze it
	Since  Time     `json:"since"`
	Holder ID       `json:"holder,omitempty"` // the job that disturbs it now
	Waits  int      `json:"waits"`            // jobs that wait for it, as far as known
	Hosts  []string `json:"hosts,omitempty"`
}

// Lack says what some jobs of a task need and do not get, and why.
type Lack struct {
	Waits string `json:"waits,omitempty"` // host/x, group/x, or a limit
	Why   string `json:"why"`             // who has it, since when, and what a person can do
	Count int    `json:"count"`           // number of jobs
	Hosts string `json:"hosts"`           // their hosts, folded
	Order bool   `json:"order,omitempty"` // an operator's order, as GET /v1/pauses lists them
}

// Limit is a named bound on how many jobs may use something at a time.
type Limit struct {
	Name    string `json:"name"`
	Zone    string `json:"zone"`
	Max     int    `json:"max"`
	Used    int    `json:"used"`
	Holders []ID   `json:"holders"` // at most 100 of them
	Waits   int    `json:"waits"`   // jobs that wait for it, as far as known
}

// Cleared is the effect of clearing a group.
type Cleared struct {
	Group   string `json:"group"`
	Zone    string `json:"zone"`
	Already bool   `json:"already"`          // it was not frozen
	Was     string `json:"was,omitempty"`    // why it was frozen
	Job     ID     `json:"job,omitempty"`    // the job whose unknown outcome froze it
	Holder  ID     `json:"holder,omitempty"` // a job that holds the group nevertheless
}

// Standing is the queue's knowledge of a job whose marker is on a host of a redundancy group.
type Standing struct {
	State   State   // empty: the queue does not know the job, or not any more
	Outcome Outcome // outcome of a job that ended
	Cleared Micros  // when a person last cleared the group; 0: never
}
