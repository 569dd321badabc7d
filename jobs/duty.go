package jobs

// Duty is something that exactly one server does at a time.
type Duty struct {
	Duty   string `json:"duty"`
	Server string `json:"server"` // who has it; empty: nobody at this moment
	Term   int64  `json:"term"`   // of the last leader; a later one is greater
}
