package secretref

import (
	"fmt"
	"strings"
	"testing"
)

// fw001 has the values of a host.
func fw001(name string) (string, error) {
	v, ok := map[string]string{"host.name": "fw001", "host.customer": "acme", "host.label.site": "zrh",
		"host.label.up": "..", "host.label.path": "a/b", "host.label.star": "*"}[name]
	if !ok {
		return "", fmt.Errorf("host fw001 has no %s", name)
	}
	return v, nil
}

func TestReferencesAreReadAndShownAlike(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"file:/etc/muster/secrets/db", "cred:db-password", "age:/etc/muster/all.age",
		"age:/etc/muster/all.age#db", "vault:kv/fw#pw", "vault:team/kv/fw/{{host.name}}#pw",
		"vault:kv/{{host.customer}}/{{host.label.site/row}}#{{host.name}}-pw", "file:/s/{{host.name}}.txt"} {
		r, err := Parse(text)
		if err != nil || r.String() != text {
			t.Errorf("Parse(%s) = %q, %v", text, r, err)
		}
	}
}

func TestWhatIsNoReferenceIsRefusedWithoutQuotingIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", "no known place"}, {"hunter2hunter2", "no known place"}, {"env:hunter2hunter2", "no known place"},
		{"file:hunter2hunter2", "no absolute path"}, {"file:/a/hunter2hunter2#b", "has a field"},
		{"file:/a/../hunter2hunter2", "part of its path"}, {"file:/a//hunter2hunter2", "part of its path"},
		{"file:/a/hunter2hunter2/", "part of its path"}, {"file:/a/*", "part of its path"},
		{"file:/a/hunter2 hunter2", "part of its path"}, {"file:/a/hunter2\nhunter2", "part of its path"},
		{"file:/a/{{saved.hunter2hunter2}}", "part of its path"}, {"cred:a/hunter2hunter2", "a path in place"},
		{"cred:", "part of its path"}, {"cred:..", "part of its path"}, {"vault:hunter2hunter2#x", "no mount"},
		{"vault:/kv/hunter2hunter2#x", "no mount"}, {"vault:kv/hunter2hunter2", "no field"},
		{"vault:kv/fw#", "an empty field"}, {"vault:kv/fw#a/hunter2hunter2", "an empty field, or"},
		{"file:/" + strings.Repeat("a", 600), "more than 512 bytes"},
	} {
		_, err := Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Parse(%q): %v, want %q", c.text, err, c.want)
		}
	}
}

func TestValuesOfAHostLeadNowhereElse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"vault:kv/{{host.customer}}/{{host.name}}#pw": "vault:kv/acme/fw001#pw",
		"file:/s/{{host.label.site}}-{{host.name}}":   "file:/s/zrh-fw001",
		"file:/s/{{host.label.up}}/passwd":            "part of its path",
		"file:/s/{{host.label.path}}":                 "other characters",
		"vault:kv/fw#{{host.label.star}}":             "other characters",
		"vault:kv/fw#{{host.label.none}}":             "has no host.label.none",
	} {
		r, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		filled, err := r.Fill(fw001)
		if got := filled.String(); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Fill(%s) = %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestPatternsAllowWhatTheyStandFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, ref string
		want         bool
	}{
		{"file:/s/*", "file:/s/a", true}, {"file:/s/*", "file:/s/a/b", false}, {"file:/s/*", "file:/t/a", false},
		{"file:/s/*", "age:/s/a", false}, {"file:/s/**", "file:/s/a/b/c", true}, {"file:/s/**", "file:/s", false},
		{"file:/s/db-*", "file:/s/db-1", true}, {"file:/s/db-*", "file:/s/web", false},
		{"vault:kv/fw/*", "vault:kv/fw/a#x", true}, {"vault:kv/fw/*", "vault:kv/fw#x", false},
		{"vault:kv/fw#pw", "vault:kv/fw#pw", true}, {"vault:kv/fw#pw", "vault:kv/fw#key", false},
		{"vault:kv/fw#pw*", "vault:kv/fw#pw2", true}, {"vault:kv/{{host.name}}", "vault:kv/fw001#x", true},
		{"vault:kv/{{host.name}}", "vault:kv/fw002#x", false}, {"vault:kv/{{host.label.star}}", "vault:kv/any#x", false},
		{"vault:kv/{{host.label.none}}", "vault:kv/x#x", false}, {"cred:*", "cred:a", true},
		{"age:/s/all.age", "age:/s/all.age", true}, {"age:/s/all.age#db", "age:/s/all.age", false},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Parse(c.ref)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Allows(r, fw001); got != c.want {
			t.Errorf("%s allows %s: %t", p, r, got)
		}
	}
	for _, text := range []string{"file:/*", "file:/*/a", "vault:*/a", "file:/s/**/a", "file:/s/a**", "vault:kv/a#**"} {
		if p, err := ParsePattern(text); err == nil {
			t.Errorf("ParsePattern(%s) = %s, want an error", text, p)
		}
	}
}

func TestThePatternOfFilesHasARoot(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"file:/etc/muster/secrets/*": "/etc/muster/secrets",
		"file:/etc/muster/secrets/db": "/etc/muster/secrets", "file:/s/{{host.name}}/pw": "/s",
		"file:/s/a*/b/c": "/s", "file:/pw": "/", "age:/s/**": "/s"} {
		if p, err := ParsePattern(text); err != nil || p.Root() != want {
			t.Errorf("%s: root %q, %v, want %q", text, p.Root(), err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"file:/a/b", "vault:kv/{{host.name}}#pw", "age:/a#{{host.label.x}}", "cred:a",
		"file:/a/*"} {
		f.Add(text, "v")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Fatalf("%q is read as %+v, and shown as %q: %v", text, r, r, err)
		}
		filled, err := r.Fill(func(string) (string, error) { return value, nil })
		if err != nil {
			return
		}
		slashes := func(s string) int { return strings.Count(placeholder.ReplaceAllString(s, ""), "/") }
		if strings.ContainsAny(filled.Path, "*{\n\x00 ") || slashes(filled.Path) != slashes(r.Path) ||
			strings.Contains("/"+filled.Path+"/", "/../") || filled.Source != r.Source {
			t.Fatalf("%q with %q leads to %q", text, value, filled)
		}
	})
}
