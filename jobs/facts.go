package jobs

// HostFacts are what a host said of itself, and when.
type HostFacts struct {
	Host      string            `json:"host"`
	At        Time              `json:"at"`        // when it said so
	Task      TaskID            `json:"task"`      // that asked for it
	Inventory string            `json:"inventory"` // version of the inventory of that task
	Facts     map[string]string `json:"facts"`
}
