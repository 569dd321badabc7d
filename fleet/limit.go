package fleet

import (
	"fmt"
	"strings"
)

// Limit bounds how many jobs may use a shared resource at a time (design §4, sem:).
type Limit struct {
	// Name is "key/value". The jobs of every host with that label count against it; name,
	// customer and zone are labels as well, but group is not. Jobs of a runbook that names
	// the limit count too.
	Name     string `json:"name"`
	Max      int    `json:"max"`                // jobs at a time, 0 or more; 0 stops them all
	Zone     string `json:"zone"`               // the one zone that counts its jobs; never empty
	Customer string `json:"customer,omitempty"` // only this customer's hosts may count against it; empty: all
}

const (
	// limitMax exceeds the workers of any fleet and is still a plain number.
	limitMax = 1_000_000
	// limitsMax bounds the limits of an inventory, because each host is checked against each.
	limitsMax = 2000
)

// CheckLimitName returns an error unless s can name a limit: a label key, '/', and a value
// of it. The keys group and host are reserved: a group and a host run one job at a time,
// whatever anybody configures.
func CheckLimitName(s string) error {
	key, value, ok := cutLimit(s)
	if !ok {
		return fmt.Errorf("limit %q: want key/value, such as site/zrh1", abbreviate(s))
	}
	if key == "group" || key == "host" {
		return fmt.Errorf("limit %q: the key %s is taken by muster itself, which lets one job at a "+
			"time on each %s: choose another", abbreviate(s), key, key)
	}
	for part := range strings.SplitSeq(key, "/") {
		if err := CheckName(part); err != nil {
			return fmt.Errorf("limit %q: key: %w", abbreviate(s), err)
		}
	}
	if err := CheckName(value); err != nil {
		return fmt.Errorf("limit %q: value: %w", abbreviate(s), err)
	}
	return nil
}

// cutLimit cuts the name of a limit at its last '/', because the key of a label may
// contain one, but its value cannot.
func cutLimit(name string) (key, value string, ok bool) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}

// Needs returns the names of the limits that count every job of a host, because the host
// has their label, in the order of limits. The needs of a runbook come on top.
func Needs(h Host, limits []Limit) []string {
	var names []string
	for i := range limits {
		if limits[i].Covers(h) {
			names = append(names, limits[i].Name)
		}
	}
	return names
}

// Covers reports whether every job of a host counts against the limit, because the
// host has its label.
func (l Limit) Covers(h Host) bool {
	key, value, ok := cutLimit(l.Name)
	if !ok || key == "group" {
		return false
	}
	got, has := (*hostLabels)(&h).Lookup(key)
	return has && got == value
}

// checkLimit returns the mistakes in a limit that show without the rest of the inventory.
func checkLimit(l Limit) []error {
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	note(CheckLimitName(l.Name))
	if l.Max < 0 || l.Max > limitMax {
		note(fmt.Errorf("limit %q: max %d: want 0 to %d", abbreviate(l.Name), l.Max, limitMax))
	}
	for _, c := range []struct {
		field string
		err   error
	}{
		{"zone", optional(CheckZone)(l.Zone)},
		{"customer", optional(CheckName)(l.Customer)},
	} {
		if c.err != nil {
			note(fmt.Errorf("limit %q: %s %w", abbreviate(l.Name), c.field, c.err))
		}
	}
	return errs
}
