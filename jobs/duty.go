package jobs

// Duty is work that exactly one server does at a time.
type Duty struct {
	Duty   string `json:"duty"`
	Server string `json:"server"` // the server that has it; empty: none at this moment
	Term   int64  `json:"term"`   // term of the last leader; later terms are greater
}
