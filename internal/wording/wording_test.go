package wording

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 59) + "ä" // 61 bytes, the last two are one letter
	list := strings.Repeat("fw001,", 40)
	for _, c := range []struct{ name, got, want string }{
		{"a short text stays", Clip("fw001"), "fw001"},
		{"no letter is cut in two", Clip(long), long[:59] + "…"},
		{"a bound of one's own", ClipTo("abcdef", 3), "abc…"},
		{"a text at its bound stays", ClipTo("abc", 3), "abc"},
		{"a quote", Quote("a\"\x1b"), `"a\"\x1b"`},
		{"the mark is outside of the quotes", Quote(long), `"` + long[:59] + `"…`},
		{"a text that ends in a mark is whole", Quote("and so on…"), `"and so on…"`},
		{"a short list stays", ClipList("a,b"), "a,b"},
		{"items of a list are whole", ClipList(list), strings.Repeat("fw001,", 33) + "…"},
		{"a list of one long item", ClipList(strings.Repeat("x", 201)), strings.Repeat("x", 200) + "…"},
		{"lines become one", OneLine("a\r\n\nb\rc\n", 100), "a b c"},
		{"a line has the mark within its bound", OneLine("abcdef", 5), "ab…"},
		{"bytes that are no letters", OneLine("a\xffb", 100), "a\uFFFDb"},
		{"errors on one line", ErrorLine(errors.Join(errors.New("a"), errors.New("b"))), "a; b"},
		{"one", Count(1, "host"), "1 host"},
		{"none", Count(0, "host"), "0 hosts"},
		{"many", Count(2, "smaller group"), "2 smaller groups"},
		{"words of a type of their own", Join([]word{"a", "b"}, " or "), "a or b"},
		{"no words", Join([]string(nil), ", "), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}

type word string

func TestTheWordThatWasMeantIsFound(t *testing.T) {
	known := []string{"runbook", "runbooks", "address", "hosts", "tasks", "ls", "rm", "queue"}
	for _, c := range []struct {
		word, nearest, misspelt string
	}{
		{"runbok", "runbook", "runbook"},
		{"rnubook", "runbook", "runbook"}, // two letters swapped are one mistake
		{"addr", "address", ""},           // the beginning of a word
		{"HOSTS", "hosts", ""},
		{"tsaks", "tasks", "tasks"},
		{"quuee", "queue", "queue"},
		{"sl", "ls", "ls"},
		{"lx", "ls", "ls"},
		{"ab", "", "ls"}, // two letters wrong of two
		{"windows", "", ""},
		{strings.Repeat("x", 10_000), "", ""},
		{"", "", "ls"},
	} {
		if got := Nearest(c.word, known); got != c.nearest {
			t.Errorf("Nearest(%.20q) = %q, want %q", c.word, got, c.nearest)
		}
		if got := Misspelt(c.word, known); got != c.misspelt {
			t.Errorf("Misspelt(%.20q) = %q, want %q", c.word, got, c.misspelt)
		}
	}
	got, want := Nearby("fw-bern", []string{"fw-basel", "fw-bren", "fw-barn", "fw-bonn", "fw-bern"}, 3),
		[]string{"fw-barn", "fw-bren", "fw-bonn"}
	if !slices.Equal(got, want) {
		t.Errorf("Nearby gives %q, want %q: the nearest first, then by the alphabet", got, want)
	}
}

// slowDistance is the definition of the distance, without rows and without a limit.
func slowDistance(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	rest := func(i, j int) int { return slowDistance(a[i:], b[j:]) }
	if a[0] == b[0] {
		return rest(1, 1)
	}
	least := 1 + min(rest(1, 1), rest(1, 0), rest(0, 1))
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		least = min(least, 1+rest(2, 2))
	}
	return least
}

func FuzzDistance(f *testing.F) {
	f.Add("runbook", "rnubok", 3)
	f.Add("", "abc", 1)
	f.Add("abcab", "bacba", 2)
	f.Fuzz(func(t *testing.T, a, b string, limit int) {
		if len(a) > 7 || len(b) > 7 || limit < 0 || limit > 10 {
			t.Skip("the definition takes too long")
		}
		if got, want := distance(a, b, limit), min(slowDistance(a, b), limit+1); got != want {
			t.Errorf("distance(%q, %q, %d) = %d, want %d", a, b, limit, got, want)
		}
	})
}

func FuzzTextsAreBounded(f *testing.F) {
	f.Add("a\nb\r\xff", 5)
	f.Add(strings.Repeat("ä", 500), 300)
	f.Add(strings.Repeat("fw001,", 50), 10)
	f.Fuzz(func(t *testing.T, s string, most int) {
		if most < len(mark) || most > 1<<20 {
			t.Skip("no bound that anybody gives")
		}
		line := OneLine(s, most)
		if len(line) > most || strings.ContainsAny(line, "\n\r") || !utf8.ValidString(line) {
			t.Errorf("OneLine(%q, %d) = %q", s, most, line)
		}
		for _, got := range []string{ClipTo(s, most), ClipList(s)} {
			kept := strings.TrimSuffix(got, mark)
			if len(kept) > max(most, listMax) || got != s && utf8.ValidString(s) &&
				!strings.HasPrefix(s, strings.TrimSuffix(kept, ",")) {
				t.Errorf("%q became %q", s, got)
			}
		}
		if q := Quote(s); len(s) <= clipMax && strings.HasSuffix(q, mark) || len(s) > clipMax != strings.HasSuffix(q, mark) {
			t.Errorf("Quote(%q) = %q", s, q)
		}
	})
}
