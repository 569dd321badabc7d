package codec

// Turned is the answer of a script to a switch.
type Turned struct {
	Status string // ok, already, later, absent, ended …
	Before string // note of the position that stood already, or stood before
	Number int64
	Err    error
}

// Turn is one turn of a switch; see control.lua.
type Turn struct{ Verb, Object, Note, Number string }
