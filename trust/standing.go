package trust

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/fleet"
	"muster/jobs"
)

// ServerPrefix begins the names of servers in allowed_signers; all others are people.
const ServerPrefix = "server:"

// signaturesMax bounds the signatures of an order that are looked at.
const signaturesMax = 32

// skew is the time by which a job may begin before its order does: clocks differ.
const skew = time.Minute

// A Standing is an order with all that its signatures prove. Only Examine makes one.
type Standing struct {
	Order  *Order
	Spec   jobs.Spec
	Hash   string
	Server bool       // a server has signed it
	People [][]string // the names of each person who has signed it
	doubts []string   // why other signatures do not count
	keys   map[string]bool
}

// Examine checks the signatures of an order, and then reads it. It returns an error if no signature
// holds at this time, or if the order cannot be read.
func Examine(order []byte, signatures []string, by Signers) (*Standing, error) {
	if len(order) == 0 {
		return nil, errors.New("the task has no signed order: its server signs none, or somebody " +
			"else has put it into the queue")
	}
	s := &Standing{Hash: HashOf(order), keys: map[string]bool{}}
	for i, text := range signatures[:min(len(signatures), signaturesMax)] {
		if err := s.count(text, order, by); err != nil {
			s.doubts = append(s.doubts, fmt.Sprintf("signature %d: %v", i+1, err))
		}
	}
	if !s.Server && len(s.People) == 0 {
		return nil, errors.New(cmp.Or(strings.Join(s.doubts, "; "), "nobody has signed the order"))
	}
	var err error
	if s.Order, err = Parse(order); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(s.Order.Spec, &s.Spec); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOrder, err)
	}
	return s, nil
}

// count adds a signature, if it holds. One key counts once.
func (s *Standing) count(text string, order []byte, by Signers) error {
	sig, names, err := by.check(text, NamespaceOrder, order)
	if err != nil {
		return err
	}
	key := sig.Fingerprint()
	if s.keys[key] {
		return nil
	}
	s.keys[key] = true
	if slices.ContainsFunc(names, isServer) {
		s.Server = true
		return nil
	}
	for _, person := range s.People {
		if slices.ContainsFunc(names, func(n string) bool { return slices.Contains(person, n) }) {
			return nil // another key of the same person
		}
	}
	s.People = append(s.People, names)
	return nil
}

func isServer(name string) bool { return strings.HasPrefix(name, ServerPrefix) }

// A Deed describes a job that a child would do under an order.
type Deed struct {
	Installation string
	Job          jobs.ID
	Zone         string
	Host         fleet.Host // as Redis has it
	Record       string     // the hash of the host that the order has; empty: it has none
	Now          time.Time
	// Continues: the job has begun, and a MAC of the nodes proves it. Asks: nothing begins, the
	// host is only asked.
	Continues, Asks bool
}

// An EarlyError is the error of a job before the beginning of its order. The job may come again.
type EarlyError struct{ Begins time.Time }

// Error names the beginning.
func (e *EarlyError) Error() string {
	return "the order begins at " + e.Begins.Format(time.RFC3339)
}

// Covers says why an order does not allow a deed, whatever the policy is; nil: it does.
func (s *Standing) Covers(d Deed) error {
	o := s.Order
	record, err := RecordOf(d.Host)
	end := o.NotAfter
	if d.Continues {
		end = end.Add(Validity)
	}
	switch {
	case err != nil:
		return err
	case o.Installation != d.Installation:
		return fmt.Errorf("it is an order of installation %q, and this node belongs to %s",
			fleet.Word(o.Installation), d.Installation)
	case o.Task != d.Job.Task():
		return fmt.Errorf("it is the order of task %s", o.Task)
	case d.Record == "":
		return fmt.Errorf("the order is not for host %s", d.Job.Host())
	case d.Host.Name != d.Job.Host() || d.Host.Zone != d.Zone:
		return fmt.Errorf("the queue has the host as %q in zone %q", fleet.Word(d.Host.Name),
			fleet.Word(d.Host.Zone))
	case d.Record != record:
		return fmt.Errorf("host %s is not as it was signed: somebody has changed its address, its keys, "+
			"the way to it or its labels in Redis; have a server read its inventory again (HUP), and "+
			"submit anew", d.Job.Host())
	case d.Asks:
		return nil
	case d.Now.Before(o.NotBefore.Add(-skew)):
		return &EarlyError{o.NotBefore}
	case d.Now.After(end):
		return fmt.Errorf("the order ended at %s, and the clock of this node says %s: submit the task "+
			"anew", o.NotAfter.Format(time.RFC3339), d.Now.UTC().Format(time.RFC3339))
	}
	return nil
}

// counts returns the number of people whom a level wants, and of those who have signed and count
// for it.
func (s *Standing) counts(l Level) (want, have int) {
	if l.Person && l.People == 0 {
		return 1, len(s.People)
	}
	for _, names := range s.People {
		if !slices.Contains(names, s.Spec.Operator) {
			have++
		}
	}
	return l.People, have
}

// Meets says what the signatures of an order lack for a level; nil: nothing.
func (s *Standing) Meets(l Level) error {
	want, others := s.counts(l)
	if others >= want {
		return nil
	}
	err := fmt.Errorf("%s of %d people have signed it", number(others), want)
	if l.Person {
		err = errors.New("no person has signed it")
	} else if others < len(s.People) {
		err = fmt.Errorf("%w; %s ordered it, so that signature does not count", err, s.Spec.Operator)
	}
	if len(s.doubts) > 0 {
		err = fmt.Errorf("%w; %s", err, strings.Join(s.doubts, "; "))
	}
	return err
}

func number(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// A Ruling decides about a job.
type Ruling struct {
	Mode   Mode   // of the rule that counts
	Why    error  // nil: the order holds
	Broken string // why the glass was broken for it; empty: it was not
}

// Refused reports whether the job must not run.
func (r Ruling) Refused() bool { return r.Why != nil && r.Mode == Require }

// Doubted reports whether the job runs and people must be told.
func (r Ruling) Doubted() bool { return r.Why != nil && r.Mode == Warn }

// Judge holds a deed against the policy. s is nil if the order has not passed Examine; why is its
// error then.
func (p *Policy) Judge(s *Standing, why error, d Deed) Ruling {
	if s != nil && why == nil {
		why = s.Covers(d)
	}
	if why != nil || s == nil {
		return Ruling{Mode: p.strictest(), Why: why}
	}
	rule, err := p.ruleFor(s.Spec.Runbook, d.Host)
	if err != nil {
		return Ruling{Mode: p.strictest(), Why: err}
	}
	broken, err := s.meets(rule)
	switch {
	case err != nil:
		return Ruling{Mode: rule.Mode, Why: fmt.Errorf("the policy of this node (line %d) wants %s: %w",
			rule.Line, rule.Level, err)}
	case broken:
		return Ruling{Mode: rule.Mode, Broken: s.Order.BreakGlass}
	}
	return Ruling{Mode: rule.Mode}
}
