package tidy

import (
	"slices"
	"strings"
	"testing"
)

// A sample is a small tree, and what a rule says about it: the beginnings of its
// messages, or none if the tree is in order.
type sample struct {
	rule  string
	name  string
	files map[string]string
	want  []string
}

var samples = slices.Concat(importSamples, roomSamples, sizeSamples, ratchetSamples, nameSamples,
	textSamples, docSamples)

func TestRules(t *testing.T) {
	t.Parallel()
	for _, s := range samples {
		t.Run(s.rule+"/"+s.name, func(t *testing.T) {
			tree, err := parseTree(s.files)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(rules, func(r rule) bool { return r.name == s.rule })
			if i < 0 {
				t.Fatalf("there is no rule %q", s.rule)
			}
			found := rules[i].check(tree)
			if len(found) != len(s.want) {
				t.Fatalf("%d mistakes found, want %d: %v", len(found), len(s.want), found)
			}
			for i, m := range found {
				if !strings.HasPrefix(show(m), s.want[i]) {
					t.Errorf("mistake %d is\n%s\nwant a beginning of\n%s", i, show(m), s.want[i])
				}
			}
		})
	}
}

func show(m mistake) string {
	if m.soft {
		return "hint: " + m.String()
	}
	return m.String()
}

// TestEveryRuleFires looks for rules that no sample breaks, or none keeps: such a
// rule may be blind, or may find fault with everything.
func TestEveryRuleFires(t *testing.T) {
	t.Parallel()
	for _, r := range rules {
		var bad, good int
		for _, s := range samples {
			switch {
			case s.rule == r.name && len(s.want) > 0:
				bad++
			case s.rule == r.name:
				good++
			}
		}
		if bad == 0 || good == 0 {
			t.Errorf("the rule %q has %d samples that break it and %d that keep it: want one of each",
				r.name, bad, good)
		}
	}
}

func TestEveryMessageSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, s := range samples {
		tree, err := parseTree(s.files)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			for _, m := range r.check(tree) {
				reason, advice := strings.ContainsAny(m.text, ",;:"), len(strings.Fields(m.text)) > 8
				if !reason || !advice || strings.Contains(m.text, "%!") {
					t.Errorf("%s: a message says what is wrong, why, and what to do, got %q", r.name, m.text)
				}
			}
		}
	}
}

func TestExceptionCoversItsPlaceOnly(t *testing.T) {
	t.Parallel()
	whole := exception{rule: "init", path: "a/a.go", why: "so"}
	one := exception{rule: "init", path: "a/a.go", subject: "x", why: "so"}
	for _, c := range []struct {
		name    string
		e       exception
		rule    string
		mistake mistake
		want    bool
	}{
		{"all of a file", whole, "init", mistake{path: "a/a.go", subject: "y"}, true},
		{"one name", one, "init", mistake{path: "a/a.go", subject: "x"}, true},
		{"another name", one, "init", mistake{path: "a/a.go", subject: "y"}, false},
		{"another file", whole, "init", mistake{path: "a/b.go"}, false},
		{"another rule", whole, "keys", mistake{path: "a/a.go"}, false},
	} {
		if got := c.e.covers(c.rule, c.mistake); got != c.want {
			t.Errorf("%s: covers = %v, want %v", c.name, got, c.want)
		}
	}
}
