package jobs

// An Appointment is what some jobs of a task wait for before they may begin: an opening of
// their windows, or the end of a freeze.
type Appointment struct {
	Task     TaskID       `json:"task"`
	Runbook  string       `json:"runbook"`
	Operator string       `json:"operator"`
	Windows  []WindowName `json:"windows"`       // whose opening it is; empty: they wait for no opening, or none is known
	Opens    Time         `json:"opens"`         // null: no opening is known, or it is a freeze
	Ends     Time         `json:"ends"`          // when the opening ends, or the freeze; null: nobody knows
	Due      Time         `json:"due"`           // when the first of the jobs is looked at next
	Count    int          `json:"count"`         // jobs
	Hosts    string       `json:"hosts"`         // of them, folded
	Why      string       `json:"why,omitempty"` // the freeze, or why no opening is known
}

// WindowName is a window, and which hosts it is for, as in "site zrh1, customer acme".
type WindowName struct {
	Name string `json:"name"`
	For  string `json:"for"`
}

// Deferrals are the jobs of a zone that wait for a time of their own: an opening of a window,
// the end of a freeze, their place in the jitter of a schedule.
type Deferrals struct {
	Count        int           `json:"count"`        // jobs that were looked at
	More         bool          `json:"more"`         // there are more, and they are due later
	Next         Time          `json:"next"`         // when the first of them is due; null: there is none
	Appointments []Appointment `json:"appointments"` // of the first tasks, the first one due first
}
