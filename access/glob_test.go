package access

import "testing"

func TestGlobsMatchNamesOfRunbooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		glob, name string
		want       bool
	}{
		{"dns", "dns", true},
		{"dns", "dns-roll", false},
		{"dns", "", false},
		{"*", "dns", true},
		{"dns*", "dns", true},
		{"dns*", "dns-roll", true},
		{"dns*", "edns", false},
		{"*roll", "dns-roll", true},
		{"*roll", "dns-rolls", false},
		{"ab*ba", "aba", false}, // the beginning and the end must not overlap
		{"ab*ba", "abba", true},
		{"ab*ba", "ab-x-ba", true},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"a?c", "abbc", false},
		{"a*b*c", "a-b-c", true},
		{"a*b*c", "a-c", false},
		{"a*?", "a", false},
		{"a*?", "ab", true},
		{"dns*", "dns/roll", true},
	} {
		g, err := parseGlob(c.glob)
		if err != nil {
			t.Errorf("%q: %v", c.glob, err)
			continue
		}
		if got := g.matches(c.name); got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.glob, c.name, got, c.want)
		}
	}
}
