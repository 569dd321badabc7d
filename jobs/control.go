package jobs

// Switch is something that an operator turns off and on: a task, a customer, a
// zone, or everything.
type Switch string

// The switches.
const (
	SwitchTask     Switch = "task"
	SwitchCustomer Switch = "customer"
	SwitchZone     Switch = "zone"
	SwitchAll      Switch = "all" // the halt
)

// Switched is what a pause, a halt or a resume did.
type Switched struct {
	What    Switch `json:"what"`
	Name    string `json:"name,omitempty"` // of the task, customer or zone
	Paused  bool   `json:"paused"`         // how it stands now
	Already bool   `json:"already"`        // it stood so before; nothing was done
	// Overtaken: an order that was given after this one reached a zone before it, and stands.
	// Paused and Note are of that one.
	Overtaken bool     `json:"overtaken,omitempty"`
	Ended     bool     `json:"ended,omitempty"` // of a task: it is over, so nothing of it can stand still
	Note      string   `json:"note"`            // who and why; of a pause that stood already, the earlier one
	Moved     int      `json:"moved"`           // jobs that were laid aside, or brought back
	Running   int      `json:"running"`         // jobs in hand: a pause lets them end, a halt lets no next step start
	Zones     []string `json:"zones"`           // that have confirmed
	Missing   []string `json:"missing"`         // zones that could not be asked; a server repeats it until they confirm
}

// Pauses is what stands still by order of an operator.
type Pauses struct {
	Halted    string            `json:"halted,omitempty"` // who and why; empty: no halt
	Zones     map[string]string `json:"zones"`            // paused zone to who and why
	Customers map[string]string `json:"customers"`        // paused customer to who and why
}

// Group is a redundancy group that is in use or frozen.
type Group struct {
	Name   string   `json:"name"`
	Zone   string   `json:"zone"`
	Frozen string   `json:"frozen,omitempty"` // why; empty: it is not frozen
	Job    ID       `json:"job,omitempty"`    // whose unknown end froze it
	Since  Time     `json:"since"`
	Holder ID       `json:"holder,omitempty"` // the job that disturbs it now
	Waits  int      `json:"waits"`            // jobs that wait for it, as far as is known
	Hosts  []string `json:"hosts,omitempty"`
}

// Lack is what some jobs of a task wait for, and why they do not get it.
type Lack struct {
	Waits string `json:"waits,omitempty"` // host/x, group/x, a limit
	Why   string `json:"why"`             // who has it since when, and what a person can do
	Count int    `json:"count"`           // jobs
	Hosts string `json:"hosts"`           // of them, folded
	Order bool   `json:"order,omitempty"` // it is one of those of which GET /v1/pauses tells
}

// Limit is a named bound of how many jobs may use something at a time.
type Limit struct {
	Name    string `json:"name"`
	Zone    string `json:"zone"`
	Max     int    `json:"max"`
	Used    int    `json:"used"`
	Holders []ID   `json:"holders"` // at most 100 of them
	Waits   int    `json:"waits"`   // jobs that wait for it, as far as is known
}

// Cleared is what clearing a group did.
type Cleared struct {
	Group   string `json:"group"`
	Zone    string `json:"zone"`
	Already bool   `json:"already"`          // it was not frozen
	Was     string `json:"was,omitempty"`    // why it was frozen
	Job     ID     `json:"job,omitempty"`    // whose unknown end froze it
	Holder  ID     `json:"holder,omitempty"` // a job that holds it all the same
}

// Standing is what the queue knows of a job whose marker a host of a redundancy group carries.
type Standing struct {
	State   State   // empty: it knows nothing of it, or no more
	Outcome Outcome // of one that ended
	Cleared Micros  // when a person said last that the group is well; 0: never
}
