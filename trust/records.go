package trust

import (
	"sync"

	"muster/fleet"
)

// RecordFunc is RecordOf, or a function that remembers its results.
type RecordFunc func(fleet.Host) (string, error)

// Records remembers the records of the hosts of the inventory that was asked for last, because
// hashing them is most of the work of a large order. The zero value is ready to use, also by
// several callers at once.
type Records struct {
	mu      sync.Mutex
	version string
	known   *sync.Map // name of a host to its record
}

// Of returns RecordOf for hosts of this version of the inventory. The hosts must be the
// inventory's own, unchanged. A nil Records remembers nothing.
func (r *Records) Of(version string) RecordFunc {
	if r == nil || version == "" {
		return RecordOf
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version != version || r.known == nil {
		r.version, r.known = version, &sync.Map{}
	}
	known := r.known
	return func(h fleet.Host) (string, error) {
		if record, ok := known.Load(h.Name); ok {
			return record.(string), nil
		}
		record, err := RecordOf(h)
		if err == nil {
			known.Store(h.Name, record)
		}
		return record, err
	}
}
