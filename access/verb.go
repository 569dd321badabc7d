package access

import (
	"slices"

	"muster/internal/wording"
)

// Verb is a kind of act: a grant allows some of them.
type Verb string

// The verbs.
const (
	See     Verb = "see"     // look at hosts, tasks, jobs and their output
	Plan    Verb = "plan"    // ask what a task would do and when
	Run     Verb = "run"     // submit tasks, retry them
	Approve Verb = "approve" // agree to the work of somebody else
	Order   Verb = "order"   // cancel, pause, halt, drain, answer gates
	Author  Verb = "author"  // change runbooks and stored contents
	Admin   Verb = "admin"   // tokens, windows, whatever concerns the whole house
	Audit   Verb = "audit"   // read the audit log

	// BreakGlass lets somebody run work alone that two people must sign. No built-in role has it.
	BreakGlass Verb = "break-glass"
)

// Verbs returns all verbs.
func Verbs() []Verb {
	return []Verb{See, Plan, Run, Approve, Order, Author, Admin, Audit, BreakGlass}
}

// ofHouse reports whether a verb concerns the whole house, so that grants with a limit of hosts
// do not count for it.
func (v Verb) ofHouse() bool { return v == Author || v == Admin || v == Audit }

// verbSet is a set of verbs: bit i stands for the verb at index i of Verbs.
type verbSet uint16

func setOf(verbs ...Verb) verbSet {
	var s verbSet
	for _, v := range verbs {
		if i := slices.Index(Verbs(), v); i >= 0 {
			s |= 1 << i
		}
	}
	return s
}

// list returns the verbs of a set in the order of Verbs.
func (s verbSet) list() []Verb {
	var list []Verb
	for i, v := range Verbs() {
		if s&(1<<i) != 0 {
			list = append(list, v)
		}
	}
	return list
}

func (s verbSet) String() string { return wording.Join(s.list(), ", ") }

// builtin are the roles that every house has.
var builtin = map[string]verbSet{
	"viewer":   setOf(See, Plan),
	"operator": setOf(See, Plan, Run, Order),
	"approver": setOf(See, Plan, Approve),
	"author":   setOf(See, Plan, Author),
	"auditor":  setOf(See, Audit),
	"admin":    setOf(See, Plan, Run, Approve, Order, Author, Admin, Audit),
}

// Roles returns the names of the built-in roles, from the least to the most powerful.
func Roles() []string {
	return []string{"viewer", "operator", "approver", "author", "auditor", "admin"}
}

// RoleVerbs returns the verbs of a built-in role; none if there is no such role.
func RoleVerbs(role string) []Verb { return builtin[role].list() }
