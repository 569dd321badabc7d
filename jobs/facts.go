package jobs

// HostFacts are facts that a host reported about itself.
type HostFacts struct {
	Host      string            `json:"host"`
	At        Time              `json:"at"`        // when it reported them
	Task      TaskID            `json:"task"`      // the task that asked for them
	Inventory string            `json:"inventory"` // version of the inventory of that task
	Facts     map[string]string `json:"facts"`
}
