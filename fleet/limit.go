package fleet

// Limit bounds how many jobs may use something at a time (design §4, sem:).
type Limit struct {
	// Name is "key/value". A job of a host whose label key has that value counts
	// against it; labels are also name, customer, zone and the others that every
	// host has, but for group. Jobs of a runbook that names it count too.
	Name     string `json:"name"`
	Max      int    `json:"max"`                // jobs at a time, 0 or more; 0 stops them all
	Zone     string `json:"zone"`               // the one zone in which it is kept; never empty
	Customer string `json:"customer,omitempty"` // whose hosts only may count against it; empty: all
}
