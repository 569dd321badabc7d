package tidy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// exceptions are the places where a rule of the house does not hold. Each has a
// reason that a reader who knows the rule will accept.
var exceptions = []exception{}

type exception struct {
	rule    string // its name, as in the name of the subtest
	path    string // the file, from the root of the tree
	subject string // the name that the message starts with; empty for all of the file
	why     string
}

func (e exception) covers(rule string, m mistake) bool {
	return e.rule == rule && e.path == m.path && (e.subject == "" || e.subject == m.subject)
}

// A rule looks at the whole tree and says where it is not kept.
type rule struct {
	name  string
	check func(*tree) []mistake
}

// rules has every rule of the house. TestEveryRuleFires shows each of them a
// sample that breaks it.
var rules = slices.Concat(importRules, roomRules, sizeRules, ratchetRules, nameRules, textRules,
	docRules)

// A mistake is one place where a rule is not kept. A soft one is only a hint: it
// is seen with -v and fails nothing.
type mistake struct {
	path    string
	line    int
	subject string
	text    string
	soft    bool
}

func (m mistake) String() string {
	where := m.path
	if m.line > 0 {
		where = fmt.Sprintf("%s:%d", m.path, m.line)
	}
	if m.subject != "" {
		return fmt.Sprintf("%s: %s: %s", where, m.subject, m.text)
	}
	return fmt.Sprintf("%s: %s", where, m.text)
}

func TestHouse(t *testing.T) {
	tree, err := loadTree("../..")
	if err != nil {
		t.Fatal(err)
	}
	needed := map[exception]bool{}
	for _, r := range rules {
		var found []mistake
		for _, m := range r.check(tree) {
			if e, ok := excused(r.name, m); ok {
				needed[e] = true
				continue
			}
			found = append(found, m)
		}
		t.Run(r.name, func(t *testing.T) { report(t, found) })
	}
	for _, e := range exceptions {
		what := strings.TrimSpace("the exception of " + e.rule + " for " + e.path + " " + e.subject)
		if e.why == "" {
			t.Errorf("%s has no reason: write one that convinces", what)
		}
		if !needed[e] {
			t.Errorf("%s is not needed any more: take it out of tidy_test.go", what)
		}
	}
}

func excused(rule string, m mistake) (exception, bool) {
	i := slices.IndexFunc(exceptions, func(e exception) bool { return e.covers(rule, m) })
	if i < 0 {
		return exception{}, false
	}
	return exceptions[i], true
}

func report(t *testing.T, found []mistake) {
	t.Helper()
	for _, m := range found {
		if m.soft {
			t.Logf("hint: %s", m)
			continue
		}
		t.Errorf("%s", m)
	}
}
