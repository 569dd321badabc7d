// Package quarantine decides which hosts take no job but checks. A host is set aside by a person,
// or by the end of a job that nobody knows; a person releases it, or a check that succeeds there.
//
// It knows hosts and jobs by their texts alone, so that the scripts, their model, the API and the
// server can say the same words.
//
// Floor 1: may import internal/wording.
package quarantine

import (
	"slices"
	"strconv"
	"strings"
)

// Field is the name of the field of a task that holds its Kind.
const Field = "quarantine"

// Kind says what a task is to hosts in quarantine.
type Kind string

// The kinds of tasks.
const (
	Plain Kind = ""        // its jobs wait until their hosts are released
	Sets  Kind = "unknown" // likewise; and a job of it that ends unknown sets its host aside
	Check Kind = "check"   // its jobs begin all the same, and success releases their hosts
)

// The events, and the orders of people.
const (
	SetAside = "quarantine"
	Release  = "unquarantine"
)

// byHand stands in place of a job if a person set the host aside.
const byHand = "-"

// Hosts maps each host in quarantine to its entry: "µs job why".
type Hosts map[string]string

// Keeps reports whether the jobs of a task wait until their host is released.
func (h Hosts) Keeps(host string, k Kind) bool {
	_, in := h[host]
	return in && k != Check
}

// An End is the end of a job on a host.
type End struct {
	Host, Job, At, Outcome, Error string
	Began                         int64 // µs
}

// After changes the hosts by the end of a job. It returns the event; empty: nothing changes. A
// check that began before its host was set aside has not seen what was wrong.
func (h Hosts) After(k Kind, e End) string {
	_, in := h[e.Host]
	switch {
	case !in && k == Sets && e.Outcome == "unknown":
		h[e.Host] = e.At + " " + e.Job + " " + e.Error
		return SetAside
	case in && k == Check && e.Outcome == "succeeded" && e.Began > ReadMark(h[e.Host]).Since:
		delete(h, e.Host)
		return Release
	}
	return ""
}

// Order changes a host as a person orders. It returns the entry that stood before, and whether the
// order changes anything.
func (h Hosts) Order(verb, host, entry string) (before string, changed bool) {
	before, in := h[host]
	switch {
	case in == (verb == SetAside):
		return before, false
	case verb == SetAside:
		h[host] = entry
	default:
		delete(h, host)
	}
	return before, true
}

// A Mark is the entry of a host, read.
type Mark struct {
	Zone  string
	Since int64  // µs
	Job   string // that ended unknown; empty: a person set the host aside
	Why   string // of a person: who and why
}

// ReadMark reads an entry.
func ReadMark(entry string) Mark {
	words := append(strings.SplitN(entry, " ", 3), "", "")
	since, _ := strconv.ParseInt(words[0], 10, 64)
	m := Mark{Since: since, Job: words[1], Why: words[2]}
	if m.Job == byHand {
		m.Job = ""
	}
	return m
}

// In begins the note of a host behind its name.
const In = ": in quarantine: "

// Note says for people why a host is in quarantine.
func (m Mark) Note() string {
	if m.Job == "" {
		return "in quarantine: " + m.Why
	}
	return "in quarantine: job " + m.Job + " ended unknown" + behind(": ", m.Why)
}

// behind returns a text behind a separator; empty: there is no text.
func behind(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// How says what a person can do about hosts in quarantine.
const How = "a check that succeeds there ends that (--check), and so does " +
	"`muster hosts unquarantine`"

// A Policy says after which jobs a host is set aside. It is off unless Unknown is set.
type Policy struct {
	Unknown   bool     // a job that ends unknown sets its host aside
	Runbooks  []string // only jobs of these; empty: of all
	Customers []string // only hosts of these; empty: of all, also those without a customer
}

// Of returns the kind of a task with a runbook on the hosts of some customers. All hosts of a task
// have the same kind: one customer of the policy is enough.
func (p Policy) Of(runbook string, customers []string, check bool) Kind {
	named := func(list []string, name string) bool {
		return len(list) == 0 || slices.Contains(list, name)
	}
	switch {
	case check:
		return Check
	case p.Unknown && named(p.Runbooks, runbook) &&
		(len(p.Customers) == 0 || slices.ContainsFunc(customers, func(c string) bool {
			return named(p.Customers, c)
		})):
		return Sets
	}
	return Plain
}
