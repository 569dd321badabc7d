package scripts_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBindGivesCanonicalValues(t *testing.T) {
	t.Parallel()
	r := mustParse(t, good)
	const text = "listen 80\n"
	config := map[string][]byte{"config": []byte(text)}
	got, err := r.Bind(map[string]string{"tries": "+007", "how": "reload", "pause": "0h2m"}, config)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"config": sum(text), "service": "httpd", "tries": "7", "force": "false",
		"pause": "120", "how": "reload",
	}
	if diff := cmp.Diff(want, got.Args); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if kept := string(got.Files[sum(text)]); kept != text {
		t.Errorf("under the hash of the file is %q: want its content", kept)
	}
}

func TestBindReportsAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := mustParse(t, good).Bind(
		map[string]string{
			"servise": "a", "service": "a b", "tries": "ten", "force": "yes", "pause": "-1s",
			"config": "/etc/x",
		},
		map[string][]byte{"tries": []byte("3"), "other": nil},
	)
	const all = `runbook push-config has no argument "other": known: config, service, tries, force, pause, how
runbook push-config has no argument "servise": did you mean "service"?
argument "config" is of type file: its content is needed, or the name of a blob (sha256: and 64 hex digits), not another text
argument "service": "a b" does not match the pattern [a-z]+
argument "tries" is of type int: give a text, not a file
argument "force": "yes": want true or false
argument "pause": "-1s": want a duration in whole seconds such as 90s, 5m or 1h30m
argument "how" is missing: want one of reload, restart`
	if err == nil {
		t.Fatal("no mistake found")
	}
	if diff := cmp.Diff(strings.Split(all, "\n"), strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBindHoldsValuesAgainstTheirRules(t *testing.T) {
	t.Parallel()
	head := "name: a\nsteps: [{name: b, run: ls}]\narguments:\n  v: "
	tests := []struct{ argument, value, want string }{
		{"{type: string}", "", ""},
		{"{type: string}", "anything at all\n", ""},
		{"{type: string}", "a\x00b", `"a\x00b" has a NUL character: pass such bytes as a file`},
		{"{type: string}", "caf\xe9", `is not UTF-8: pass such bytes as a file`},
		{"{type: string}", strings.Repeat("a", 64<<10), ""},
		{"{type: string}", strings.Repeat("a", 64<<10+1), "65537 bytes: at most 65536"},
		{"{type: string, max_length: 2}", "éé", ""},
		{"{type: string, max_length: 2}", "ééé", `"ééé" has 3 characters: at most 2`},
		{"{type: string, pattern: 'a|b'}", "ab", `"ab" does not match the pattern a|b`},
		{"{type: string, pattern: 'a'}", "a\n", `"a\n" does not match the pattern a`},
		{"{type: string, pattern: '(?m)^a$'}", "a\nb", `does not match`},
		{"{type: int}", "-9223372036854775808", ""},
		{"{type: int}", "9223372036854775808", `want a whole number`},
		{"{type: int}", "1.0", `"1.0": want a whole number`},
		{"{type: int}", "0x10", `"0x10": want a whole number`},
		{"{type: int, min: -1}", "-2", "-2 is too small: want at least -1"},
		{"{type: int, max: 3}", "3", ""},
		{"{type: int, max: 3}", "4", "4 is too large: want at most 3"},
		{"{type: bool}", "true", ""},
		{"{type: bool}", "True", `"True": want true or false`},
		{"{type: duration}", "0s", ""},
		{"{type: duration}", "1500ms", `"1500ms": want a duration in whole seconds`},
		{"{type: duration}", "10", `"10": want a duration in whole seconds`},
		{"{type: duration, min: 1m}", "59s", "59s is too small: want at least 1m0s"},
		{"{type: duration, max: 1m}", "61s", "1m1s is too large: want at most 1m0s"},
		{"{type: enum, values: [a, b]}", "b", ""},
		{"{type: enum, values: [a, b]}", "c", `"c" is none of a, b`},
	}
	for _, test := range tests {
		_, err := mustParse(t, head+test.argument+"\n").Bind(map[string]string{"v": test.value}, nil)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s, %.40q: got %v, want no mistake", test.argument, test.value, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s, %.40q: got %v, want %s", test.argument, test.value, err, test.want)
		}
	}
}

func TestFilesOfATaskAreBoundedTogether(t *testing.T) {
	t.Parallel()
	r := mustParse(t, "name: a\nsteps: [{name: b, run: ls}]\n"+
		"arguments: {f: {type: file}, g: {type: file}}\n")
	half := []byte(strings.Repeat("x", 512<<10))
	files := map[string][]byte{"f": half, "g": half}
	v, err := r.Bind(nil, files)
	if err != nil || len(v.Files) != 1 {
		t.Errorf("got %d contents, %v; want the same content once", len(v.Files), err)
	}
	files["g"] = append([]byte("y"), half...)
	_, err = r.Bind(nil, files)
	const want = "the files of a task have 1048577 bytes together: at most 1048576"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestBindKeepsItsOwnCopyOfFiles(t *testing.T) {
	t.Parallel()
	content := []byte("a")
	v, err := mustParse(t, good).Bind(map[string]string{"how": "reload"},
		map[string][]byte{"config": content})
	if err != nil {
		t.Fatal(err)
	}
	content[0] = 'b'
	if got := string(v.Files[v.Args["config"]]); got != "a" {
		t.Errorf("the content became %q with the caller's", got)
	}
}

func TestCanonicalValuesAreFixedPoints(t *testing.T) {
	t.Parallel()
	r := mustParse(t, "name: a\nsteps: [{name: b, run: ls}]\narguments:\n"+
		"  i: {type: int}\n  s: {type: string}\n  b: {type: bool}\n")
	rapid.Check(t, func(t *rapid.T) {
		args := map[string]string{
			"i": rapid.StringMatching(`[+-]?0{0,3}[0-9]{1,18}`).Draw(t, "i"),
			"s": anyValue().Draw(t, "s"),
			"b": rapid.SampledFrom([]string{"true", "false"}).Draw(t, "b"),
		}
		once, err := r.Bind(args, nil)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := r.Bind(once.Args, nil)
		if err != nil || !cmp.Equal(once, twice) {
			t.Fatalf("bound again: %v, %v; first %v", twice, err, once)
		}
	})
}

func FuzzBind(f *testing.F) {
	f.Add("service", "httpd")
	f.Add("tries", "+3")
	f.Add("pause", "1h0m5s")
	f.Add("how", "restart\x00")
	f.Add("force", "\xff")
	f.Fuzz(func(t *testing.T, name, text string) {
		args := map[string]string{"how": "reload"}
		args[name] = text
		v, err := mustParse(t, good).Bind(args, map[string][]byte{"config": nil})
		if err != nil {
			return
		}
		for name, text := range v.Args {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				t.Errorf("argument %q is bound to %q, which no host can take", name, text)
			}
		}
	})
}
