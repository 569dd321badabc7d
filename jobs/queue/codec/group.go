package codec

import (
	"cmp"
	"strings"

	"muster/jobs"
)

// GroupPrefix begins the name of a redundancy group's semaphore.
const GroupPrefix = "group/"

// FrozenField is the field of a semaphore that holds the reason of its freeze; see exclude.lua.
const FrozenField = "frozen"

// Semaphore holds what Redis knows about a group or limit.
type Semaphore struct {
	Name    string
	Holders map[string]string // job to token; frozenField to the reason
	Waits   int
}

// ReadGroup returns a redundancy group, read from its semaphore.
func ReadGroup(zone, name string, s Semaphore) jobs.Group {
	g := jobs.Group{Name: name, Zone: zone, Waits: s.Waits}
	for holder, v := range s.Holders {
		if holder == FrozenField {
			g.Job, g.Since, g.Frozen = ReadFrozen(v)
			continue
		}
		g.Holder = jobs.ID(holder)
		if g.Frozen == "" {
			token, _ := jobs.ParseMicros(v)
			g.Since = jobs.TimeOf(token)
		}
	}
	return g
}

// ReadFrozen reads "job instant why".
func ReadFrozen(v string) (job jobs.ID, since jobs.Time, why string) {
	parts := strings.SplitN(v, " ", 3)
	if len(parts) < 3 {
		return "", jobs.Time{}, cmp.Or(v, "not known")
	}
	at, _ := jobs.ParseMicros(parts[1])
	return jobs.ID(parts[0]), jobs.TimeOf(at), cmp.Or(parts[2], "a job ended unknown")
}
