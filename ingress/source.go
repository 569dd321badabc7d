package ingress

import (
	"slices"
	"time"

	"muster/events"
)

// A Class says which events of a queue are worked on before others.
type Class string

// The classes, in their order: what changes how we work comes first, then what ends work, then
// what begins some.
const (
	Management Class = "management"
	Result     Class = "result"
	Trigger    Class = "trigger"
)

// Classes returns the classes in their order.
func Classes() []Class { return []Class{Management, Result, Trigger} }

// A Source is one configured sender of events.
type Source struct {
	Name       string
	Preset     string
	Form       Form
	SecretFile string
	Customer   string // whose events these are; empty: of the whole house, or see CustomerAt
	CustomerAt string // path in the body of the customer; empty: see Customer
	Class      Class
	Bounds     Bounds
	Program    *Program // prints the events; nil: they come over HTTP
	Line       int      // of the file
}

// Bounds keep a source from filling the house.
type Bounds struct {
	PerMinute int           // events that are taken in a minute
	Waiting   int           // events that may wait to be worked on
	Bytes     int           // of bodies that wait or are kept
	Remember  time.Duration // for which a repeated delivery is recognized
}

// The usual bounds, and the most that a source may have.
const (
	perMinuteUsual = 600
	perMinuteMax   = 60_000
	waitingUsual   = 10_000
	waitingMax     = 100_000
	bytesUsual     = 64 << 20
	rememberUsual  = 24 * time.Hour
	rememberMin    = time.Minute
	rememberMax    = 7 * 24 * time.Hour
)

// usual returns the bounds of a source that says none.
func usual() Bounds { return Bounds{perMinuteUsual, waitingUsual, bytesUsual, rememberUsual} }

// Sent returns the source of events that people send by hand.
func Sent() Source {
	return Source{Name: SentName, Class: Trigger, Bounds: usual()}
}

// SentName is the name of the source of events that people send by hand. No configured source has
// it.
const SentName = "hand"

// Own returns the source of muster's own events. They are told in the order in which they
// happened, so one that is beyond the bounds waits, and is not lost.
func Own() Source {
	return Source{Name: events.Own, Class: Result, Bounds: Bounds{PerMinute: perMinuteMax,
		Waiting: waitingUsual, Bytes: bytesUsual, Remember: rememberMax}}
}

// Sources are the sources of a file.
type Sources struct{ list []Source }

// All returns the sources in the order of the file.
func (s *Sources) All() []Source {
	if s == nil {
		return nil
	}
	return slices.Clone(s.list)
}

// Find returns the source with a name.
func (s *Sources) Find(name string) (Source, bool) {
	if s == nil {
		return Source{}, false
	}
	i := slices.IndexFunc(s.list, func(one Source) bool { return one.Name == name })
	if i < 0 {
		return Source{}, false
	}
	return s.list[i], true
}
