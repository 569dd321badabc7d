package trust

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"muster/fleet"
	"muster/internal/sshsig"
	"muster/internal/wording"
)

// Known holds facts about the house, against which somebody holds a folder trust.
type Known struct {
	Policy, Signers string           // names of the files
	Runbooks        []string         // names; none: not known
	Hosts           *fleet.Inventory // nil: not known
	Servers         []string         // public keys of servers, as KeyText writes them
	Now             time.Time
}

// Soon is the time before the end of a key in which somebody should look.
const Soon = 14 * 24 * time.Hour

// Looks returns what is well-formed in a policy and cannot be meant so: runbooks and hosts that are
// not there, and rules that never count.
func (p *Policy) Looks(k Known) fleet.Mistakes {
	l := looker{Known: k}
	for _, rule := range p.rules {
		l.names(rule)
	}
	l.unused(p.rules)
	l.list.Sort([]string{k.Policy, k.Signers})
	return l.list
}

// Looks returns what is well-formed in policy and signers together and cannot be meant so.
func (r *Rules) Looks(k Known) fleet.Mistakes {
	l := looker{Known: k, list: r.Policy.Looks(k)}
	servers, people := l.signers(r.Signers)
	l.servers(r, servers)
	for _, rule := range r.Policy.rules {
		l.needs(rule, servers, people)
	}
	l.list.Sort([]string{k.Policy, k.Signers})
	return l.list
}

// looker collects findings.
type looker struct {
	Known
	list fleet.Mistakes
}

func (l *looker) find(file string, line int, format string, args ...any) {
	l.list = append(l.list, fleet.Mistake{File: file, Line: line, Text: fmt.Sprintf(format, args...)})
}

// named returns the runbooks that a rule is for.
func (l *looker) named(r Rule) []string {
	if len(r.Runbooks) == 0 {
		return l.Runbooks
	}
	return slices.DeleteFunc(slices.Clone(l.Runbooks), func(name string) bool {
		return !slices.ContainsFunc(r.Runbooks, func(glob string) bool {
			ok, _ := path.Match(glob, name) // ParsePolicy refuses a bad pattern
			return ok
		})
	})
}

// names looks for runbooks and hosts that are not there.
func (l *looker) names(r Rule) {
	for _, glob := range r.Runbooks {
		if len(l.Runbooks) == 0 || len(l.named(Rule{Runbooks: []string{glob}})) > 0 {
			continue
		}
		hint := ""
		if near := wording.Nearest(glob, l.Runbooks); near != "" {
			hint = fmt.Sprintf(": did you mean %s?", near)
		}
		l.find(l.Policy, r.Line, "runbooks: no runbook that is known here fits %s%s", wording.Quote(glob),
			hint)
	}
	if l.Hosts == nil || r.Hosts.String() == "" {
		return
	}
	picked, lost, err := l.Hosts.Known(r.Hosts)
	sel := wording.Quote(r.Hosts.String())
	switch {
	case err != nil:
		l.find(l.Policy, r.Line, "hosts %s picks nothing here: %v", sel, err)
		return
	case len(lost) > 0:
		l.find(l.Policy, r.Line, "hosts %s: no host has the name %s", sel,
			wording.ClipList(fleet.Fold(lost)))
		return
	}
	for range picked {
		return
	}
	l.find(l.Policy, r.Line, "hosts %s picks no host", sel)
}

// places returns the hosts that a rule is for, by their numbers. Without an inventory there is one
// host, of which nobody knows whether a selector picks it: certain is false then.
func (l *looker) places(r Rule) (hosts []int, certain bool) {
	switch {
	case r.Hosts.String() == "" && l.Hosts == nil:
		return []int{0}, true
	case l.Hosts == nil:
		return []int{0}, false
	case r.Hosts.String() == "":
		for i := range l.Hosts.Len() {
			hosts = append(hosts, i)
		}
		return hosts, true
	}
	picked, _, err := l.Hosts.Known(r.Hosts)
	if err != nil {
		return nil, false
	}
	return slices.Collect(picked), true
}

// unused looks for rules that never count, because rules before them take all their jobs.
func (l *looker) unused(rules []Rule) {
	taken := map[string][]bool{} // the hosts of each runbook that have a rule
	for _, rule := range rules {
		hosts, certain := l.places(rule)
		runbooks, counts := l.named(rule), false
		for _, runbook := range runbooks {
			t := taken[runbook]
			if t == nil {
				t = make([]bool, max(1, l.hosts()))
				taken[runbook] = t
			}
			for _, h := range hosts {
				counts = counts || !t[h]
				t[h] = t[h] || certain
			}
		}
		if !counts && len(hosts) > 0 && len(runbooks) > 0 {
			l.find(l.Policy, rule.Line, "this rule never counts: the rules before it take every job that "+
				"it fits")
		}
	}
}

func (l *looker) hosts() int {
	if l.Hosts == nil {
		return 1
	}
	return l.Hosts.Len()
}

// signers looks at the keys, and returns the servers and the people whose keys may sign orders.
func (l *looker) signers(a sshsig.Allowed) (servers []sshsig.Line, people [][]string) {
	later := map[int]string{}
	for _, line := range a.Lines(NamespaceOrder, l.Now.Add(Soon)) {
		later[line.Number] = line.Why
	}
	for _, line := range a.Lines(NamespaceOrder, l.Now) {
		who := strings.Join(line.Names, ",")
		switch {
		case line.Why != "":
			l.find(l.Signers, line.Number, "the key of %s signs no orders: %s", who, line.Why)
		case slices.ContainsFunc(line.Names, isServer):
			servers = append(servers, line)
		default:
			people = withPerson(people, line.Names)
		}
		if line.Why == "" && later[line.Number] != "" {
			l.find(l.Signers, line.Number, "the key of %s ends soon: %s", who, later[line.Number])
		}
	}
	return servers, people
}

// withPerson adds the names of a line to people. Lines that share a name
// are of one person, as nodes count them.
func withPerson(people [][]string, names []string) [][]string {
	var others [][]string
	for _, p := range people {
		if slices.ContainsFunc(p, func(n string) bool { return slices.Contains(names, n) }) {
			names = slices.Concat(names, p)
			continue
		}
		others = append(others, p)
	}
	return append(others, names)
}

// servers looks whether the orders of servers can hold.
func (l *looker) servers(r *Rules, lines []sshsig.Line) {
	name := ServerPrefix + r.Keys.Installation()
	own := slices.ContainsFunc(lines, func(one sshsig.Line) bool {
		return slices.Contains(one.Names, name)
	})
	if !own {
		l.find(l.Signers, 1, "no key of %s signs orders, and node.key is of that installation: add the "+
			"line that `muster init` prints on a server", name)
	}
	for _, key := range l.Servers {
		if !slices.ContainsFunc(lines, func(one sshsig.Line) bool { return one.Key == key }) {
			l.find(l.Signers, 1, "the key of the server of this machine is in no line that signs orders: "+
				"nodes refuse its tasks; `muster init` prints its line")
		}
	}
}

// needs looks whether there are enough signers for a rule.
func (l *looker) needs(r Rule, servers []sshsig.Line, people [][]string) {
	want := r.Level.People
	if r.Level.Person {
		want = max(want, 1)
	}
	switch {
	case r.Mode == Off:
	case want > len(people):
		l.find(l.Policy, r.Line, "%s can never hold: %d of the people in allowed_signers have a key "+
			"that signs orders, want %d", r.Level, len(people), want)
	case want == 0 && len(servers) == 0:
		l.find(l.Policy, r.Line, "%s can never hold: no key of a server signs orders", r.Level)
	}
}
