package notify

import (
	"fmt"
	"path"
	"slices"
	"time"

	"muster/jobs"
)

// Rules is a file of rules: who is told what, and how each receiver is reached.
type Rules struct {
	list      []Rule
	receivers []Receiver
}

// A Rule says which happenings are told to whom.
type Rule struct {
	Name  string
	Place Place
	Whats []What
	Match
	Group    Group
	Wait     time.Duration // a group collects so long
	Cleared  bool          // also told when it is over
	OnChange bool          // of tasks: only if the last one like it ended otherwise
	To       []string      // receivers
}

// A Place is a line of a file.
type Place struct {
	File string
	Line int
}

// String returns a place as people know it.
func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Match narrows a rule.
type Match struct {
	Outcomes  []jobs.Outcome // none: all
	Customers []string       // globs; none: all
	Runbooks  []string       // globs; none: all
	Zones     []string       // globs; none: all
}

// Group says which happenings share a message.
type Group string

// The groups of messages.
const (
	ByTask     Group = "task" // or by the thing itself, where there is no task
	ByRunbook  Group = "runbook"
	ByCustomer Group = "customer"
	ByRule     Group = "rule" // all of a rule
)

func groups() []Group { return []Group{ByTask, ByRunbook, ByCustomer, ByRule} }

// A Receiver is somebody who is told, with the one way on which messages go there.
type Receiver struct {
	Name    string
	Expire  time.Duration // a message that did not arrive in so long is given up
	Webhook *Webhook
	Slack   *Webhook // its URL is the secret; it is not signed
	Alerts  *Webhook // Alertmanager
	Mail    *Mail
	Program *Program
}

// A Webhook is reached over HTTP.
type Webhook struct {
	URL      string // empty: it is in the file
	URLFile  string
	KeyFile  string // key of the signature
	CAFile   string // authorities in PEM; empty: those of the system
	User     string // of Basic authentication; empty: none
	Password string // file
}

// Mail is reached over SMTP.
type Mail struct {
	Server       string // host:port
	TLS          string // starttls, tls, or none for this machine
	From         string
	To           []string
	User         string
	PasswordFile string
	CAFile       string
}

// A Program gets the message as JSON on its standard input.
type Program struct {
	Argv    []string
	Timeout time.Duration
}

// Kind returns the word for the way to the receiver.
func (r Receiver) Kind() string {
	switch {
	case r.Webhook != nil:
		return "webhook"
	case r.Slack != nil:
		return "slack"
	case r.Alerts != nil:
		return "alertmanager"
	case r.Mail != nil:
		return "mail"
	}
	return "program"
}

// Rules returns the rules in their order.
func (r *Rules) Rules() []Rule { return r.list }

// Receivers returns the receivers in their order.
func (r *Rules) Receivers() []Receiver { return r.receivers }

// Receiver returns a receiver by its name.
func (r *Rules) Receiver(name string) (Receiver, bool) {
	i := slices.IndexFunc(r.receivers, func(x Receiver) bool { return x.Name == name })
	if i < 0 {
		return Receiver{}, false
	}
	return r.receivers[i], true
}

// fit returns the part of a signal that a rule tells, and reports whether there is one. If a task
// has hosts of several customers, a rule for one of them tells the part of that customer.
func (r Rule) fit(s Signal) (Signal, bool) {
	switch {
	case !slices.Contains(r.Whats, s.What), s.Over && !r.Cleared,
		!globs(r.Runbooks, s.Runbook), !globs(r.Zones, s.Zone),
		len(r.Outcomes) > 0 && s.What == Outcome && !slices.Contains(r.Outcomes, s.Outcome):
		return s, false
	}
	if s.What != TaskEnded {
		return s, globs(r.Customers, s.Customer)
	}
	if len(r.Customers) > 0 {
		s.Counts = slices.DeleteFunc(slices.Clone(s.Counts), func(c Count) bool {
			return !globs(r.Customers, c.Customer)
		})
		if len(s.Counts) == 0 {
			return s, false
		}
	}
	// A rule with outcomes tells of the tasks that have one of them.
	return s, len(r.Outcomes) == 0 || slices.ContainsFunc(s.Counts, func(c Count) bool {
		return slices.Contains(r.Outcomes, c.Outcome)
	})
}

// globs reports whether a word fits one of the patterns; none fits everything.
func globs(list []string, word string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(g string) bool {
		ok, err := path.Match(g, word)
		return err == nil && ok
	})
}
