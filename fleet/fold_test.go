package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/fleet"
)

func TestFold(t *testing.T) {
	t.Parallel()
	tests := []struct{ names, want string }{
		{"", ""},
		{"fw1", "fw1"},
		{"fw001", "fw001"},
		{"fw2 fw1 fw2", "fw[1-2]"},
		{"fw1 vpn1", "fw1,vpn1"},
		{"fw1 fw3", "fw[1,3]"},
		{"fw9 fw10 fw11", "fw[9-11]"},
		{"fw09 fw10 fw11", "fw[09-11]"},
		{"fw99 fw100", "fw[99-100]"},
		{"fw099 fw100", "fw[099-100]"},
		{"fw09 fw9 fw10", "fw[9,09-10]"},
		{"fw98 fw99 fw098 fw099 fw100", "fw[98-99,098-100]"},
		{"fw0 fw1 fw00 fw01", "fw[0-1,00-01]"},
		{"fw fw0 fw1", "fw,fw[0-1]"},
		{"1 2 3", "[1-3]"},
		{"fw1.example.com fw2.example.com", "fw[1-2].example.com"},
		{"fw1.dc1.net fw2.dc1.net fw1.dc2.net", "fw1.dc[1-2].net,fw2.dc1.net"},
		{"r1a1 r1a2 r1a3 r2a1 r2a2", "r1a[1-3],r2a[1-2]"},
		{"a1b2c3d4e5f6g a2b2c3d4e5f6g", "a1b2c3d4e5f6g,a2b2c3d4e5f6g"}, // too many numbers
		{"a1234567890123456789 a1234567890123456790", "a1234567890123456789,a1234567890123456790"},
		{"web alpha Beta", "Beta,alpha,web"},
		{"x-1 x-2 x_1", "x-[1-2],x_1"},
	}
	for _, tt := range tests {
		given := strings.Fields(tt.names)
		before := slices.Clone(given)
		if got := fleet.Fold(given); got != tt.want {
			t.Errorf("Fold(%s) = %s, want %s", tt.names, got, tt.want)
		}
		if !slices.Equal(given, before) {
			t.Errorf("Fold(%s) changed its argument to %v", tt.names, given)
		}
	}
}

func TestFoldWritesAFleetInOneLine(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("fw%03d", i+1))
	}
	names = append(names, "vpn1")
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(names), func(i, j int) {
		names[i], names[j] = names[j], names[i]
	})
	if got := fleet.Fold(names); got != "fw[001-300],vpn1" {
		t.Errorf("Fold = %s", got)
	}
}

// These names have few different letters and digits, so that families, lengths and leading
// zeros collide often.
func anyName() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-c]{0,2}[0-9]{1,3}([-._][a-b]?[0-9]{0,2}){0,3}|[a-c]{1,3}`)
}

func TestFoldedNamesSelectThemselves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOfN(anyName(), 1, 60).Draw(t, "names")
		var hosts []fleet.Host
		for _, name := range given {
			hosts = append(hosts, plainHost(name))
		}
		inv, err := fleet.New(unique(hosts))
		if err != nil {
			t.Fatal(err)
		}
		text := fleet.Fold(given)
		sel, err := fleet.ParseSelector(text)
		if err != nil {
			t.Fatalf("Fold(%q): %v", given, err)
		}
		picked, err := inv.Select(sel)
		if err != nil {
			t.Fatalf("Fold(%q): %v", given, err)
		}
		want := slices.Compact(slices.Sorted(slices.Values(given)))
		if got := names(picked); !slices.Equal(got, want) {
			t.Fatalf("%s picks %q, want %q", text, got, want)
		}
		if again := fleet.Fold(names(picked)); again != text {
			t.Fatalf("folded again: %s, before %s", again, text)
		}
	})
}

// The operators are those of sets, for all operands.
func TestOperatorsAreThoseOfSets(t *testing.T) {
	t.Parallel()
	var hosts []fleet.Host
	for i := range 30 {
		h := plainHost(fmt.Sprintf("fw%02d", i))
		h.Labels = map[string]string{"even": fmt.Sprint(i%2 == 0), "third": fmt.Sprint(i % 3)}
		hosts = append(hosts, h)
	}
	inv, err := fleet.New(hosts)
	if err != nil {
		t.Fatal(err)
	}
	operands := map[string]func(i int) bool{
		"all":                       func(int) bool { return true },
		"fw05":                      func(i int) bool { return i == 5 },
		"fw[03-09/2,20]":            func(i int) bool { return i >= 3 && i <= 9 && i%2 == 1 || i == 20 },
		"fw1?":                      func(i int) bool { return i/10 == 1 },
		"fw*5":                      func(i int) bool { return i%10 == 5 },
		"{even=true}":               func(i int) bool { return i%2 == 0 },
		"{even!=true,third in (0)}": func(i int) bool { return i%2 == 1 && i%3 == 0 },
		"{!even}":                   func(int) bool { return false },
	}
	var texts []string
	for text := range operands {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(texts).Draw(t, "first")
		var want [30]bool
		for i := range want {
			want[i] = operands[text](i)
		}
		for range rapid.IntRange(0, 5).Draw(t, "more") {
			op := rapid.SampledFrom([]string{",", "!", "&"}).Draw(t, "op")
			next := rapid.SampledFrom(texts).Draw(t, "next")
			for i := range want {
				in := operands[next](i)
				switch op {
				case ",":
					want[i] = want[i] || in
				case "!":
					want[i] = want[i] && !in
				case "&":
					want[i] = want[i] && in
				}
			}
			text += op + next
		}
		var wants []string
		for i, in := range want {
			if in {
				wants = append(wants, fmt.Sprintf("fw%02d", i))
			}
		}
		sel, err := fleet.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		picked, err := inv.Select(sel)
		if got := names(picked); !slices.Equal(got, wants) || (err == nil) != (len(wants) > 0) {
			t.Fatalf("%s picks %v, %v; want %v", text, got, err, wants)
		}
	})
}

func FuzzFold(f *testing.F) {
	f.Add("fw1 fw2 fw03")
	f.Add("[ , ] ! a[1-2]")
	f.Add("fw99 fw100 é1 é2 \xff1 \xff2")
	f.Fuzz(func(t *testing.T, text string) {
		given := strings.Fields(text)
		folded := fleet.Fold(given)
		if (folded == "") != (len(given) == 0) {
			t.Errorf("Fold(%q) = %q", given, folded)
		}
	})
}
