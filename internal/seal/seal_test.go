package seal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func keysOf(t testing.TB, first byte, more ...byte) Keys {
	t.Helper()
	var text strings.Builder
	for _, b := range append([]byte{first}, more...) {
		var raw [KeySize]byte
		raw[0] = b
		text.WriteString(FormatKey(raw))
	}
	k, err := ParseKeys([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealedTextComesBackAndShowsNothing(t *testing.T) {
	t.Parallel()
	k := keysOf(t, 1)
	for _, text := range []string{"", "x", "hunter2-correct-horse", strings.Repeat("ä\n'", 30000),
		"ends in \x80", strings.Repeat("a", 63), strings.Repeat("a", 64)} {
		sealed, err := k.Seal("0task", "password", Text(text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := k.Seal("0task", "password", Text(text))
		if err != nil || again != sealed {
			t.Errorf("the same text sealed twice is %q and %q, %v: a repeated submit would be another one",
				sealed, again, err)
		}
		if len(text) > 3 && strings.Contains(sealed, text) {
			t.Errorf("the text is in %q", sealed)
		}
		if got, err := k.Open("0task", "password", sealed); err != nil || string(got) != text {
			t.Errorf("Open = %q, %v, want %q", string(got), err, text)
		}
	}
}

func TestLengthShowsInStepsOnly(t *testing.T) {
	t.Parallel()
	k := keysOf(t, 1)
	one, _ := k.Seal("t", "a", "x")
	two, _ := k.Seal("t", "a", Text(strings.Repeat("x", 60)))
	if len(one) != len(two) {
		t.Errorf("1 byte is sealed in %d, 60 in %d: want the same", len(one), len(two))
	}
}

func TestSealedForOneArgumentOfOneTaskOnly(t *testing.T) {
	t.Parallel()
	k := keysOf(t, 1)
	sealed, err := k.Seal("task1", "password", "hunter2-hunter2")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, task, argument, sealed string
		keys                         Keys
		want                         string
	}{
		{"another task", "task2", "password", sealed, k, "another task"},
		{"another argument", "task1", "user", sealed, k, "another task or argument"},
		{"another key", "task1", "password", sealed, keysOf(t, 2), "is sealed with key"},
		{"no key", "task1", "password", sealed, Keys{}, "no key here"},
		{"cut off", "task1", "password", sealed[:40], k, "not whole"},
		{"one bit", "task1", "password", sealed[:len(sealed)-2] + flip(sealed[len(sealed)-2:]), k, ""},
		{"nothing", "task1", "password", "", k, "not of a form"},
		{"plain", "task1", "password", "hunter2-hunter2", k, "not of a form"},
		{"a newer form", "task1", "password", "s2" + sealed[2:], k, "another version"},
	} {
		text, err := c.keys.Open(c.task, c.argument, c.sealed)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Open = %q, %v, want an error with %q", c.name, string(text), err, c.want)
		}
	}
}

func flip(two string) string {
	if two[0] == 'A' {
		return "B" + two[1:]
	}
	return "A" + two[1:]
}

func TestOldKeysOpenAndTheFirstSeals(t *testing.T) {
	t.Parallel()
	sealed, err := keysOf(t, 1).Seal("t", "a", "of the old key")
	if err != nil {
		t.Fatal(err)
	}
	both := keysOf(t, 2, 1)
	if got, err := both.Open("t", "a", sealed); err != nil || string(got) != "of the old key" {
		t.Errorf("with the old key second: %q, %v", string(got), err)
	}
	fresh, err := both.Seal("t", "a", "of the new key")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keysOf(t, 2).Open("t", "a", fresh); err != nil {
		t.Errorf("the first key did not seal: %v", err)
	}
}

func TestKeyFileMistakesAreAllToldAndNotRepeated(t *testing.T) {
	t.Parallel()
	good := FormatKey([KeySize]byte{7})
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "there is no key in it"},
		{"comments", "# a\n\n", "there is no key in it"},
		{"short", "c2hvcnQ\n", "line 1: the key has 5 bytes: want 32"},
		{"long", strings.TrimSpace(good) + "AAAA", "line 1: the key has 35 bytes: want 32"},
		{"no base64", good + "swordfish!\n", "line 2: no key"},
		{"two mistakes", "swordfish!\nc2hvcnQ", "line 2: the key has 5"},
		{"too many", strings.Repeat(good, 17), "17 keys: at most 16"},
	} {
		_, err := ParseKeys([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%s: %v, want %q and nothing of the file", c.name, err, c.want)
		}
	}
	if _, err := ParseKeys([]byte("# of 2026\n  " + strings.TrimSpace(good) + "=\r\n")); err != nil {
		t.Errorf("a comment, blanks, padding: %v", err)
	}
}

func TestTextAndKeysAreNeverPrinted(t *testing.T) {
	t.Parallel()
	v := struct {
		T Text
		K Keys
		M map[string]Text
	}{"swordfish", keysOf(t, 's'), map[string]Text{"a": "swordfish"}}
	coded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	all := string(coded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		all += fmt.Sprintf(verb, v) + fmt.Sprintf(verb, v.T) + fmt.Sprintf(verb, v.K)
	}
	if strings.Contains(all, "sword") || strings.Contains(all, "73776f7264") || strings.Contains(all, "115") {
		t.Errorf("a secret was printed: %s", all)
	}
}

func FuzzOpen(f *testing.F) {
	k := keysOf(f, 1)
	sealed, err := k.Seal("t", "a", "hunter2")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add("s1.00000000.")
	f.Add("s1..")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := k.Open("t", "a", text)
		if (err == nil) != (text == sealed) {
			t.Errorf("Open(%q) = %q, %v", text, string(got), err)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	f.Add([]byte(FormatKey([KeySize]byte{1})))
	f.Add([]byte("# x\n\nAAAA"))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := ParseKeys(data)
		if err != nil {
			return
		}
		sealed, err := k.Seal("t", "a", "text")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := k.Open("t", "a", sealed); err != nil || got != "text" {
			t.Errorf("keys that were read do not open what they seal: %v", err)
		}
	})
}
