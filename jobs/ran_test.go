package jobs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"muster/jobs"
)

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestWhatRanIsBoundedAndSaysSo(t *testing.T) {
	t.Parallel()
	long, binary := strings.Repeat("ä", 1<<20), "\xff\x00\x01"
	r := jobs.NewRan("1", "abc", []jobs.Argument{
		{Name: "binary", Value: binary, File: true},
		{Name: "cmd", Value: "uname -a; echo it's"},
		{Name: "long", Value: long},
		{Name: "password", Value: "swordfish", Bytes: 9, SHA256: hexSum("swordfish"), Secret: true},
		{Name: "rules", Value: "table inet x\n", File: true},
		{Name: "stored", File: true, Bytes: 7, SHA256: "77"},
	})
	for i, want := range []string{
		"binary=(file of 3 bytes, sha256 " + hexSum(binary) + ")",
		`cmd='uname -a; echo it'\''s'`,
		"long='" + long[:4096] + "'… (2097152 bytes, sha256 " + hexSum(long) + ")",
		"password=(secret)",
		"rules='table inet x\n' (file, sha256 " + hexSum("table inet x\n") + ")",
		"stored=(file of 7 bytes, sha256 77)",
	} {
		if got := r.Arguments[i].Text(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if a := r.Arguments[3]; a != (jobs.Argument{Name: "password", Secret: true}) {
		t.Errorf("of a secret there is kept %+v", a)
	}
	if a := r.Arguments[1]; a.Cut || a.Bytes != 0 || a.SHA256 != "" {
		t.Errorf("a short text: %+v", a)
	}
}

func TestWhatRanFitsWhateverWasGiven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) jobs.Argument {
			text := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "text")
			return jobs.Argument{Name: "a", File: rapid.Bool().Draw(t, "file"),
				Value: strings.Repeat(string(text), rapid.IntRange(0, 200).Draw(t, "times"))}
		}), 0, 20).Draw(t, "arguments")
		r := jobs.NewRan("", "", list)
		sum := 0
		for i, a := range r.Arguments {
			// A byte that is not UTF-8 becomes three bytes.
			if sum += len(a.Value); !utf8.ValidString(a.Value) || strings.Contains(a.Value, "\x00") {
				t.Fatalf("argument %d is no text: %q", i, a.Value)
			}
			whole := utf8.ValidString(list[i].Value) && !strings.Contains(list[i].Value, "\x00")
			if whole && !a.Cut && a.Value != list[i].Value {
				t.Fatalf("argument %d is not whole, and does not say so", i)
			}
		}
		if sum > 3*16<<10 {
			t.Fatalf("%d bytes", sum)
		}
		text, err := json.Marshal(r)
		var again jobs.Ran
		if err != nil || json.Unmarshal(text, &again) != nil || again.Text() != r.Text() {
			t.Fatalf("it does not come back: %s", text)
		}
	})
}

func TestTheSameWorkHasOneName(t *testing.T) {
	t.Parallel()
	base := []jobs.Argument{{Name: "cmd", Value: "true"}}
	name := jobs.WorkOf("exec", "h", base)
	for what, other := range map[string]string{
		"runbook":  jobs.WorkOf("exec (check)", "h", base),
		"text":     jobs.WorkOf("exec", "h2", base),
		"argument": jobs.WorkOf("exec", "h", []jobs.Argument{{Name: "cmd", Value: "sleep 12"}}),
		"name":     jobs.WorkOf("exec", "h", []jobs.Argument{{Name: "cmd2", Value: "true"}}),
		"file":     jobs.WorkOf("exec", "h", []jobs.Argument{{Name: "cmd", SHA256: "9"}}),
		"secret":   jobs.WorkOf("exec", "h", []jobs.Argument{{Name: "cmd", Secret: true}}),
	} {
		if other == name {
			t.Errorf("another %s is taken for the same work", what)
		}
	}
	if again := jobs.WorkOf("exec", "h", []jobs.Argument{{Name: "cmd", Value: "true"}}); again != name {
		t.Errorf("%s and %s", name, again)
	}
	if a, b := jobs.WorkOf("x", "h", []jobs.Argument{{Name: "p", Value: "a", Secret: true}}), jobs.WorkOf("x",
		"h", []jobs.Argument{{Name: "p", Value: "b", Secret: true}}); a != b {
		t.Error("a secret is in the name of the work, so it can be found by trying")
	}
}
