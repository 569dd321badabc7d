package trust

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/wording"
	"muster/scripts"
)

// A Mode decides about a job whose order does not hold.
type Mode string

// The modes, the strictest last.
const (
	Off     Mode = "off"     // it runs
	Warn    Mode = "warn"    // it runs, and people are told
	Require Mode = "require" // it ends failed, and nothing was touched
)

func modes() []string { return []string{string(Off), string(Warn), string(Require)} }

// weight orders modes by strictness.
func (m Mode) weight() int {
	switch m {
	case Require:
		return 2
	case Warn:
		return 1
	}
	return 0
}

// A Level says whose word a job needs. The zero value is the word of a server.
type Level struct {
	// Person: a person has signed, with a key that allowed_signers lists.
	Person bool
	// People is the number of people who have signed, none of whom is the one who ordered; 0: no
	// such number.
	People int
}

// String returns the level as a policy writes it.
func (l Level) String() string {
	switch {
	case l.People > 0:
		return fmt.Sprint("people: ", l.People)
	case l.Person:
		return "person"
	}
	return "server"
}

// peopleMax bounds how many people a level can ask for.
const peopleMax = 9

// A Rule says what jobs with some runbooks, on some hosts, need.
type Rule struct {
	Line     int
	Runbooks []string       // globs; none: all
	Hosts    fleet.Selector // empty text: all
	Level    Level
	Mode     Mode
	// Glass has the names of those who may run such work alone, in an emergency.
	Glass []string
}

// all reports whether the rule fits every job.
func (r Rule) all() bool { return len(r.Runbooks) == 0 && r.Hosts.String() == "" }

// A Policy has the rules by which a node judges orders.
type Policy struct {
	rules []Rule
}

// Rules returns the rules, in their order.
func (p *Policy) Rules() []Rule { return p.rules }

// rest is the rule of jobs that no rule fits.
func rest() Rule { return Rule{Mode: Require} }

// ParsePolicy reads the file policy.yaml of a node:
//
//	rules:                              # the first one that fits a job counts
//	  - runbooks: [firmware, "dns*"]    # absent: all
//	    hosts: customer=acme            # a selector; absent: all
//	    people: 2                       # so many have signed, beside the one who ordered
//	    break_glass: [user:dora]        # who may run it alone, in an emergency; absent: nobody
//	    mode: require                   # off, warn or require
//	  - level: server                   # or person
//	    mode: require
//
// A file with a mistake is refused whole. The error is of type fleet.Mistakes and has all of them.
func ParsePolicy(src fleet.Source) (*Policy, error) {
	r := &policyReader{file: src.Name}
	root, wrong := scripts.ReadYAML(src.Name, "a mapping with rules", src.Data)
	for _, m := range wrong {
		r.mistakes = append(r.mistakes, fleet.Mistake{File: r.file, Line: m.Line, Text: m.Text})
	}
	if len(wrong) == 0 && root != nil {
		r.read(root)
	}
	if len(r.mistakes) > 0 {
		r.mistakes.Sort([]string{src.Name})
		return nil, r.mistakes
	}
	return &r.policy, nil
}

type policyReader struct {
	file     string
	policy   Policy
	mistakes fleet.Mistakes
}

func (r *policyReader) mistake(n *yaml.Node, format string, args ...any) {
	r.mistakes = append(r.mistakes, fleet.Mistake{File: r.file, Line: n.Line,
		Text: fmt.Sprintf(format, args...)})
}

func (r *policyReader) read(root *yaml.Node) {
	fields := r.fields(root, "the file", []string{"rules"})
	rules := fields["rules"]
	switch {
	case fields == nil:
		return
	case rules == nil:
		r.mistake(root, "rules is missing: want a list; to ask nothing of orders, write "+
			"rules: [{mode: off}]")
		return
	case rules.Kind != yaml.SequenceNode || len(rules.Content) == 0:
		r.mistake(rules, "rules: want a list of at least one rule")
		return
	}
	var whole *yaml.Node
	for _, n := range rules.Content {
		rule, ok := r.rule(n)
		if whole != nil {
			r.mistake(n, "this rule never counts: the rule at line %d fits every job", whole.Line)
		}
		if ok && rule.all() && whole == nil {
			whole = n
		}
		r.policy.rules = append(r.policy.rules, rule)
	}
}

// fields returns the values of a mapping by their keys; nil if it is none.
func (r *policyReader) fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.mistake(n, "%s: want a mapping with %s", what, strings.Join(known, ", "))
		return nil
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch name := key.Value; {
		case fields[name] != nil:
			r.mistake(key, "key %s is there already, at line %d: keep one of them", fleet.Word(name),
				fields[name].Line)
		default:
			fields[name] = value
			if err := knownKey(name, known); err != nil {
				r.mistake(key, "%s: %v", what, err)
			}
		}
	}
	return fields
}

func knownKey(name string, known []string) error {
	for _, k := range known {
		if k == name {
			return nil
		}
	}
	return fmt.Errorf("unknown key %q: %s", fleet.Word(name), scripts.Instead(name, known))
}

func (r *policyReader) rule(n *yaml.Node) (rule Rule, ok bool) {
	before := len(r.mistakes)
	fields := r.fields(n, "a rule", []string{"runbooks", "hosts", "level", "people",
		"break_glass", "mode"})
	rule = Rule{Line: n.Line}
	if fields == nil {
		return rule, false
	}
	if f := fields["runbooks"]; f != nil {
		rule.Runbooks = r.globs(f)
	}
	if f := fields["hosts"]; f != nil {
		sel, err := fleet.ParseSelector(f.Value)
		if err == nil && f.Kind != yaml.ScalarNode {
			err = errors.New("want a selector, such as customer=acme")
		}
		if err == nil && len(sel.Earlier()) > 0 {
			err = errors.New("a node knows no earlier task: want names or labels of hosts")
		}
		if err != nil {
			r.mistake(f, "hosts: %v", err)
		}
		rule.Hosts = sel
	}
	r.level(n, fields, &rule)
	if f := fields["break_glass"]; f != nil {
		rule.Glass = r.glass(f, rule.Level)
	}
	switch mode := fields["mode"]; {
	case mode == nil:
		r.mistake(n, "mode is missing: want %s", "off, warn or require")
	case !isMode(mode.Value):
		r.mistake(mode, "mode %s: want %s", wording.Quote(mode.Value), "off, warn or require")
	default:
		rule.Mode = Mode(mode.Value)
	}
	return rule, len(r.mistakes) == before
}

func isMode(text string) bool {
	for _, m := range modes() {
		if m == text {
			return true
		}
	}
	return false
}

func (r *policyReader) level(n *yaml.Node, fields map[string]*yaml.Node, rule *Rule) {
	level, people := fields["level"], fields["people"]
	switch {
	case level != nil && people != nil:
		r.mistake(people, "people and level: want one of them")
	case people != nil:
		many, err := strconv.Atoi(people.Value)
		if err != nil || many < 1 || many > peopleMax {
			r.mistake(people, "people: want a number from 1 to %d", peopleMax)
		}
		rule.Level.People = many
	case level != nil && level.Value != "server" && level.Value != "person":
		r.mistake(level, "level %s: want server or person; for more than one, write people: 2",
			wording.Quote(level.Value))
	case level != nil:
		rule.Level.Person = level.Value == "person"
	case fields["mode"] != nil && fields["mode"].Value != string(Off):
		r.mistake(n, "level is missing: want server or person, or people: 2")
	}
}

func (r *policyReader) globs(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.mistake(n, "runbooks: want a list of names or globs, such as [firmware, \"dns*\"]")
		return nil
	}
	var out []string
	for _, one := range n.Content {
		if _, err := path.Match(one.Value, ""); err != nil || one.Kind != yaml.ScalarNode ||
			one.Value == "" {
			r.mistake(one, "runbooks: %s: want a name or a glob", wording.Quote(one.Value))
			continue
		}
		out = append(out, one.Value)
	}
	return out
}

// ruleFor returns the rule for a job.
func (p *Policy) ruleFor(runbook string, h fleet.Host) (Rule, error) {
	for _, rule := range p.rules {
		fits, err := rule.Fits(runbook, h)
		if err != nil {
			return rest(), err
		}
		if fits {
			return rule, nil
		}
	}
	return rest(), nil
}

// Fits reports whether a rule is for a runbook on a host.
func (r Rule) Fits(runbook string, h fleet.Host) (bool, error) {
	named := len(r.Runbooks) == 0
	for _, glob := range r.Runbooks {
		ok, _ := path.Match(glob, runbook) // ParsePolicy refuses a bad pattern
		named = named || ok
	}
	if !named || r.Hosts.String() == "" {
		return named, nil
	}
	one, err := fleet.New([]fleet.Host{shownAs(h)})
	if err != nil {
		return false, err
	}
	picked, _, err := one.Known(r.Hosts) // a name that is not this host's is no mistake
	if err != nil {
		return false, err
	}
	for range picked {
		return true, nil
	}
	return false, nil
}

// shownAs returns a host that selectors find as they find h, and that any inventory takes.
func shownAs(h fleet.Host) fleet.Host {
	return fleet.Host{Name: h.Name, Customer: h.Customer, Zone: h.Zone, Group: h.Group,
		Labels: h.Labels, Address: "192.0.2.1", Port: 22, User: "nobody", Fence: fleet.FenceNone,
		HostKeys: []string{anyKey}}
}

// anyKey is a well-formed key that nobody has.
const anyKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"

// strictest returns the mode of jobs without any proof. Somebody could have invented their runbook
// and host to fit a lenient rule.
func (p *Policy) strictest() Mode {
	mode := Off
	for _, rule := range p.rules {
		if rule.Mode.weight() > mode.weight() {
			mode = rule.Mode
		}
	}
	if n := len(p.rules); n == 0 || !p.rules[n-1].all() {
		return rest().Mode
	}
	return mode
}
