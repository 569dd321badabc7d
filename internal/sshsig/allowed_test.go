package sshsig

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func at(text string) time.Time {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestAnAllowedKeyHasNamesInItsNamespacesAndTimes(t *testing.T) {
	t.Parallel()
	one, two, three, four := signerOf(t, 1).PublicKey(), signerOf(t, 2).PublicKey(), signerOf(t, 3).PublicKey(),
		tokens(t, 1)[ssh.KeyAlgoSKECDSA256].public
	a, err := ParseAllowed([]byte("# who may sign\r\n\r\n  \t\n" +
		"alice,alice@example.com " + publicLine(one) + " her key\r\n" +
		"bob \t namespaces=\"git,muster-*,!muster-halt\",valid-after=\"20250101Z\",Valid-Before=\"202506010930Z\" \t" +
		publicLine(two) + "\n" +
		"\tbob valid-after=\"20260101000030Z\"\t" + publicLine(two) + " a # comment \"\n" +
		"  # carol " + publicLine(three) + "\n" +
		"os:dora,alice " + publicLine(four) + "\n" +
		"dora,os:dora namespaces=\"a \\\"b\\\"\" " + publicLine(four)))
	if err != nil {
		t.Fatal(err)
	}
	if a.Len() != 5 || (Allowed{}).Len() != 0 {
		t.Errorf("%d and %d lines, want 5 and 0", a.Len(), (Allowed{}).Len())
	}
	for _, c := range []struct {
		key             ssh.PublicKey
		namespace, time string
		want            []string
		why             string
	}{
		{one, "git", "2001-01-01 00:00:00", []string{"alice", "alice@example.com"}, ""},
		{two, "git", "2025-01-01 00:00:00", []string{"bob"}, ""},
		{two, "muster-run", "2025-06-01 09:30:00", []string{"bob"}, ""},
		{two, "muster-", "2025-03-01 00:00:00", []string{"bob"}, ""},
		{two, "muster-halt", "2026-01-01 00:00:30", []string{"bob"}, ""},
		{two, "muster-halt", "2025-03-01 00:00:00", nil, `by line 5 it is not for the namespace "muster-halt", only ` +
			`for git,muster-*,!muster-halt; by line 6 it is not valid before 2026-01-01 00:00:30 UTC`},
		{two, "Git", "2025-03-01 00:00:00", nil, `by line 5 it is not for the namespace "Git"`},
		{two, "git", "2024-12-31 23:59:59", nil, "by line 5 it is not valid before 2025-01-01 00:00:00 UTC; by line 6"},
		{two, "git", "2025-06-01 09:30:01", nil, "by line 5 it has expired: it was valid until 2025-06-01 09:30:00 UTC"},
		{three, "git", "2025-03-01 00:00:00", nil, "is in no line of the allowed signers"},
		{certOf(t, signerOf(t, 1)), "git", "2025-03-01 00:00:00", nil, "is in no line of the allowed signers"},
		{four, "x", "2025-03-01 00:00:00", []string{"os:dora", "alice"}, ""},
		{four, `a "b"`, "2025-03-01 00:00:00", []string{"os:dora", "alice", "dora"}, ""},
	} {
		got, why := a.Principals(c.key, c.namespace, at(c.time))
		name := c.namespace + " at " + c.time
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if c.why == "" && why != nil {
			t.Errorf("%s: %v", name, why)
		} else if c.why != "" {
			says(t, name, why, c.why)
		}
	}
	if _, why := (Allowed{}).Principals(one, "git", time.Now()); why == nil {
		t.Error("the zero value allows a key")
	}
	// The last second is whole.
	if _, why := a.Principals(two, "git", at("2025-06-01 09:30:00").Add(999*time.Millisecond)); why != nil {
		t.Error(why)
	}
}

// mistakes are lines that are refused, and what is said of them. {key} stands for a good key. Those
// for which ssh-keygen is right to be more lenient are not held against it.
var mistakes = []struct {
	line    string
	want    string
	lenient bool
}{
	{"alice", "it has no key", false},
	{"alice ssh-ed25519", "no key in base64 follows the type ssh-ed25519", false},
	{"alice ssh-ed25519 AAAA", "the key is cut", false},
	{"alice ssh-ed25519 #", "no key in base64", false},
	{"{key}", "it begins with the type of a key", false},
	{"alice ssh-rsa {blob}", "the type is ssh-rsa, but that of the key is ssh-ed25519", false},
	{"alice ssh-ed25519-cert-v01@openssh.com {blob}", "certificates are not supported here", false},
	{"alice ssh-dss {blob}", "one of DSA", false},
	{"alice ssh-ed448 {blob}", `"ssh-ed448" is no option, nor the type of a key`, false},
	{"alice namespaces=\"git\"", "it has no key", false},
	{"alice namespaces=\"git {key}", "a quote without an end", false},
	{"alice namespaces=git {key}", `namespaces: want its value in quotes`, false},
	{"alice namespaces {key}", `namespaces: want its value in quotes`, false},
	{"alice namespaces=\"git\"x\"\" {key}", `namespaces: want its value in quotes`, false},
	{"alice namespaces=x\"git\" {key}", `namespaces: want its value in quotes`, false},
	{"alice namespaces=\"git\",namespaces=\"x\" {key}", "the option namespaces is there twice", false},
	{"alice verify-required {key}", `"verify-required" is no option`, false},
	{"alice \"namespaces=git\" {key}", "is no option", false},
	{"alice valid-after=\"2025\" {key}", `valid-after: "2025" is no time: want YYYYMMDD`, false},
	{"alice valid-after=\"\" {key}", `valid-after: "" is no time`, false},
	{"alice valid-after=\"Z\" {key}", `valid-after: "Z" is no time`, false},
	{"alice valid-before=\"20251301\" {key}", `"20251301" is no time`, false},
	{"alice valid-before=\"2025010112000x\" {key}", `"2025010112000x" is no time`, false},
	{"alice valid-before=\"+2025011\" {key}", `"+2025011" is no time`, false},
	{"alice valid-after=\"19700101Z\" {key}", "is too early: want a time after 1970", false},
	{"alice valid-after=\"20250102\",valid-before=\"20250101\" {key}", "valid-before is not later", false},
	{"alice valid-after=\"20250101\",valid-before=\"20250101\" {key}", "valid-before is not later", false},
	{"alice, bob {key}", `"bob" is no option`, false},

	{"alice cert-authority {key}", "certificates are not supported here: list the key of each signer", true},
	{"alice namespaces=\"git\", {key}", `"" is no option`, true},
	{"alice ,namespaces=\"git\" {key}", `"" is no option`, true},
	{"alice namespaces=\"\" {key}", "namespaces: the pattern is empty", true},
	{"alice namespaces=\"git,,x\" {key}", "namespaces: the pattern is empty", true},
	{"alice namespaces=\"git,!\" {key}", "namespaces: the pattern is empty", true},
	{"alice valid-after=\"20250229\" {key}", `"20250229" is no time`, true},
	{"alice valid-before=\"20250101z\" {key}", `"20250101z" is no time`, true},
	{"alice valid-before=\"20250101UTC\" {key}", `"20250101UTC" is no time`, true},
	{"alice valid-before=\"19600101Z\" {key}", "is too early", true},
	{"* {key}", `the principal "*" is a pattern, but it must be known whose key this is`, true},
	{"alice,*@example.com {key}", "is a pattern", true},
	{"alice,!bob {key}", "is a pattern", true},
	{"alic? {key}", "is a pattern", true},
	{"alice,,bob {key}", "the name in the principals is empty", true},
	{",alice {key}", "the name in the principals is empty", true},
	{"\"alice\" {key}", "has a quote: want it without", true},
	{"alice\u200b {key}", "cannot be seen", true},
	{"\ufeffalice {key}", "cannot be seen", true},
}

// filled puts a key into a line.
func filled(line string, key ssh.PublicKey) string {
	public := publicLine(key)
	_, data, _ := strings.Cut(public, " ")
	return strings.NewReplacer("{key}", public, "{blob}", data).Replace(line)
}

func TestMistakesInALineAreSaid(t *testing.T) {
	t.Parallel()
	for _, c := range mistakes {
		a, err := ParseAllowed([]byte("\n" + filled(c.line, signerOf(t, 1).PublicKey())))
		says(t, c.line, err, c.want)
		if err != nil && !strings.HasPrefix(err.Error(), "line 2: ") || a.Len() != 0 {
			t.Errorf("%s: %v, %d lines", c.line, err, a.Len())
		}
	}
	if _, err := ParseAllowed(make([]byte, allowedMax+1)); err == nil {
		t.Error("a file that is too long is read")
	}
}

func TestAllMistakesOfAFileAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	key := publicLine(signerOf(t, 1).PublicKey())
	_, err := ParseAllowed([]byte("alice " + key + "\n*,bo\"b namespaces=x,cert-authority ssh-ed25519 AAAA\n#\nbob\n"))
	const want = "line 2: the principal \"*\" is\nline 2: the principal \"bo\\\"b\" has\nline 2: namespaces: want\n" +
		"line 2: cert-authority: certificates\nline 2: the key is cut\nline 4: it has no"
	if err == nil {
		t.Fatal("it is read")
	}
	got := strings.Split(err.Error(), "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(got) || !strings.HasPrefix(got[i], line) {
			t.Fatalf("got\n%v\nwant lines that begin with\n%s", err, want)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d mistakes, want 6: %v", len(got), err)
	}
}

func TestPatternsMatchAsInOpenSSH(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patterns, text string
		want           bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", "", false}, {"a", "aa", false}, {"aa", "a", false},
		{"*", "", true}, {"*", "abc", true}, {"**", "abc", true}, {"a*", "a", true}, {"*a", "ba", true},
		{"*a", "ab", false}, {"a*c", "abbc", true}, {"a*c", "abcb", false}, {"*ab*ab", "abxab", true},
		{"*ab*ab", "ab", false}, {"*aab", "aaab", true}, {"?", "", false}, {"?", "x", true}, {"a?c", "abc", true},
		{"a?c", "ac", false}, {"??", "ä", true}, {"?*", "", false}, {"[a]", "a", false}, {"a.c", "abc", false},
		{"!a", "a", false}, {"!a", "b", false}, {"*,!a", "b", true}, {"*,!a", "a", false}, {"!a,*", "a", false},
		{"a,b", "b", true}, {"!a*,ab", "ab", false}, {"!!a,*", "!a", false}, {"!!a,*", "a", true},
	} {
		if got := matchList(strings.Split(c.patterns, ","), c.text); got != c.want {
			t.Errorf("%s on %q: %v, want %v", c.patterns, c.text, got, c.want)
		}
	}
	slow := strings.Repeat("a*", 100) + "b"
	if match(slow, strings.Repeat("a", nameMax)) {
		t.Error("it matches")
	}
}

func FuzzParseAllowed(f *testing.F) {
	key := signerOf(f, 1).PublicKey()
	public := publicLine(key)
	f.Add("alice " + public)
	f.Add("a,b namespaces=\"x,!y\",valid-before=\"20300101\" " + public + " c\r\n#\n")
	f.Add("a valid-after=\"20250101Z\"")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAllowed([]byte(text))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "line ") && len(text) <= allowedMax {
					t.Errorf("%q: %q names no line", text, line)
				}
			}
			return
		}
		names, why := a.Principals(key, space, at("2025-06-01 12:00:00"))
		if (why == nil) != (len(names) > 0) || a.Len() == 0 && why == nil {
			t.Errorf("%q: %q, %v", text, names, why)
		}
		for _, name := range names {
			if name == "" || strings.ContainsAny(name, "*?!,\" \t\r\n") || !strings.Contains(text, name) {
				t.Errorf("%q: the name %q", text, name)
			}
		}
	})
}
