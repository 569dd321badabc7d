package jobs

// An Appointment says why some jobs of a task wait before they may begin: for an opening of their
// windows, or for the end of a freeze.
type Appointment struct {
	Task     TaskID `json:"task"`
	Runbook  string `json:"runbook"`
	Operator string `json:"operator"`
	// of the opening; empty: there is none, or none is known
	Windows []WindowName `json:"windows"`
	Opens   Time         `json:"opens"`         // null: none is known, or it is a freeze
	Ends    Time         `json:"ends"`          // end of the opening or the freeze; null: not known
	Due     Time         `json:"due"`           // when the first of the jobs is due
	Count   int          `json:"count"`         // number of jobs
	Hosts   string       `json:"hosts"`         // their hosts, folded
	Why     string       `json:"why,omitempty"` // the freeze, or why no opening is known
}

// WindowName is a window with the hosts for which it is, as in "site zrh1, customer acme".
type WindowName struct {
	Name string `json:"name"`
	For  string `json:"for"`
}

// Deferrals are the jobs of a zone that wait for a time of their own: for an opening of a window,
// the end of a freeze, or their place in the jitter of a schedule.
type Deferrals struct {
	Count        int           `json:"count"`        // number of jobs that were looked at
	More         bool          `json:"more"`         // there are more jobs, with later times
	Next         Time          `json:"next"`         // when the first is due; null: there is none
	Appointments []Appointment `json:"appointments"` // of the tasks that are due first, in order
}
