package access

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/strictyaml"
	"muster/internal/wording"
	"muster/scripts"
)

// Expectation is a question with the answer that somebody wants, for tests of a policy.
type Expectation struct {
	File  string
	Line  int
	Who   Who
	Act   Act
	Host  string // empty: the whole house
	Allow bool
}

// String returns the question, as in: os:alice run firewall on fw001.
func (e Expectation) String() string {
	text := e.Who.Principal + " " + e.Act.String()
	if e.Host != "" {
		text += " on " + e.Host
	}
	return text
}

// ParseExpectations reads expectations:
//
//   - {who: os:alice, verb: run, runbook: firewall, host: fw001, want: allow}
//   - {who: os:bob, groups: [os-group:ops], verb: admin, want: refuse}
//
// The error is of type fleet.Mistakes and has all mistakes.
func ParseExpectations(src fleet.Source) ([]Expectation, error) {
	r := &reader{in: strictyaml.New(src.Name)}
	root := r.in.Document(src.Data, "a list of expectations")
	var list []Expectation
	switch {
	case root == nil:
	case root.Kind != yaml.SequenceNode:
		r.in.Wrong(root.Line, "this is no file of expectations: want a list of mappings with who, verb "+
			"and want")
	default:
		for _, n := range r.in.Filled(root, "the file", "expectations") {
			list = append(list, r.expectation(n))
		}
	}
	if err := r.in.Err(); err != nil {
		return nil, err
	}
	return list, nil
}

var expectationKeys = []string{"who", "groups", "verb", "runbook", "host", "want"}

func (r *reader) expectation(n *yaml.Node) Expectation {
	e := Expectation{File: r.in.File, Line: n.Line}
	fields := r.in.Fields(n, "an expectation", expectationKeys)
	if fields == nil {
		return e
	}
	get := func(key string, check func(string) error) string {
		field := fields[key]
		if field == nil {
			return ""
		}
		text, ok := r.in.Text(field, key)
		if ok {
			if err := check(text); err != nil {
				r.in.Wrong(field.Line, "%v", err)
			}
		}
		return text
	}
	for _, key := range []string{"who", "verb", "want"} {
		if fields[key] == nil {
			r.in.Wrong(n.Line, "%s is missing: every expectation needs who, verb and want", key)
		}
	}
	e.Who.Principal = get("who", CheckPrincipal)
	if groups := fields["groups"]; groups != nil {
		for _, word := range r.in.Texts(groups, "groups", atLeastOne) {
			if err := CheckGroup(word.Value); err != nil {
				r.in.Wrong(word.Line, "%v", err)
			}
			e.Who.Groups = append(e.Who.Groups, word.Value)
		}
	}
	e.Act.Verb = Verb(get("verb", CheckVerb))
	e.Act.Runbook = get("runbook", CheckRunbook)
	e.Host = get("host", fleet.CheckName)
	e.Allow = get("want", checkWant) == "allow"
	return e
}

// CheckVerb returns an error unless a text is a verb; the error has the nearest one.
func CheckVerb(text string) error {
	if setOf(Verb(text)) == 0 {
		return fmt.Errorf("unknown verb %s: %s", wording.Quote(text),
			scripts.Instead(text, texts(Verbs())))
	}
	return nil
}

// CheckRunbook returns an error unless a text can be the name of a runbook.
func CheckRunbook(text string) error {
	if g, err := parseGlob(text); err != nil {
		return err
	} else if g.prefix != text {
		return fmt.Errorf("runbook %s is a glob: want the name of one runbook", wording.Quote(text))
	}
	return nil
}

func checkWant(text string) error {
	words := []string{"allow", "refuse"}
	if !slices.Contains(words, text) {
		return fmt.Errorf("want %s: %s", wording.Quote(text), scripts.Instead(text, words))
	}
	return nil
}

// Failure is an expectation that does not hold.
type Failure struct {
	Expectation
	Index int    // in the list of expectations
	Words string // what holds instead, and why
}

// Test returns the expectations that do not hold. One about a host that the inventory lacks never
// holds, because a mistyped name would make a refusal look right.
func Test(r *Rights, list []Expectation) []Failure {
	var failures []Failure
	for i, e := range list {
		switch answer := r.Explain(e.Who, e.Act, e.Host); {
		case e.Host != "" && !r.known(e.Host):
			failures = append(failures, Failure{e, i, "the inventory has no host " + e.Host})
		case answer.Allowed != e.Allow:
			failures = append(failures, Failure{e, i, answer.Words})
		}
	}
	return failures
}
