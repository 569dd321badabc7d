package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestParseMutant(t *testing.T) {
	const patch = "\n--- a/x.go\n+++ b/x.go\n"
	for _, c := range []struct {
		name, text string
		want       mutant
		wrong      string // part of the error
	}{
		{
			name: "whole",
			text: "Breaks: all of it.\nCaught by: a/b TestX TestY\nCaught by: c TestZ\n" + patch,
			want: mutant{breaks: "all of it.", catchers: []catcher{
				{"a/b", []string{"TestX", "TestY"}}, {"c", []string{"TestZ"}}}},
		},
		{name: "no patch", text: "Breaks: x\nCaught by: a TestX\n", wrong: "no line begins with ---"},
		{name: "breaks nothing", text: "Caught by: a TestX\n" + patch, wrong: `no line "Breaks: …"`},
		{name: "caught by nobody", text: "Breaks: x\n" + patch, wrong: `no line "Caught by: `},
		{name: "no package", text: "Breaks: x\nCaught by: TestX TestY\n" + patch, wrong: "want a package"},
		{name: "no test", text: "Breaks: x\nCaught by: a\n" + patch, wrong: "want a package"},
		{name: "what stands in the patch is not its head", text: "x" + patch + "+Breaks: x\n",
			wrong: `no line "Breaks: …"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseMutant(c.text)
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("error is %v, want it to say %q", err, c.wrong)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestReadVerdicts(t *testing.T) {
	v := read(`{"Action":"run","Test":"TestPass"}
{"Action":"pass","Test":"TestPass"}
{"Action":"run","Test":"TestFail"}
{"Action":"fail","Test":"TestFail"}
{"Action":"run","Test":"TestHangs"}
{"Action":"output","Output":"panic: test timed out\n"}
{"Action":"fail"}
`)
	for test, want := range map[string]string{"TestPass": "pass", "TestFail": "fail", "TestHangs": "fail",
		"TestNobody": "there is no such test"} {
		if got := v.how(test); got != want {
			t.Errorf("%s: %s, want %s", test, got, want)
		}
	}
	if v = read(`{"Action":"build-fail"}`); v.how("TestPass") != "it does not compile, which is no catch" {
		t.Errorf("a build that failed: %s", v.how("TestPass"))
	}
}

// sample is a tree of one package, which has a test that sees whether Two is 2.
func sample(t *testing.T, patches map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"go.mod":      "module sample\n\ngo 1.26.0\n",
		"p/p.go":      "package p\n\n// Two is 2.\nfunc Two() int { return 2 }\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Error(Two())\n\t}\n}\n",
	}
	for name, text := range patches {
		files["tools/mutants/"+name+".patch"] = text
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// change is a patch of the sample.
func change(test, from, to string) string {
	return "Breaks: x\nCaught by: p " + test + "\n\n--- a/p/p.go\n+++ b/p/p.go\n@@ -3,2 +3,2 @@\n" +
		" // Two is 2.\n-func Two() int { return " + from + " }\n+func Two() int { return " + to + " }\n"
}

func TestMutantsAreJudged(t *testing.T) {
	for _, c := range []struct {
		name, patch string
		want        string // part of the table
		wrong       string // part of the error; empty: all is caught
	}{
		{"caught", change("TestTwo", "2", "3"), "caught", ""},
		{"survives", change("TestTwo", "2", "1 + 1"), "SURVIVES", "1 of 1 mutants were not caught"},
		{"does not compile", change("TestTwo", "2", `"two"`), "no catch", "1 of 1 mutants were not caught"},
		{"does not apply", change("TestTwo", "7", "3"), "does not apply any more",
			"1 of 1 mutants were not caught"},
		{"names no test", change("TestThree", "2", "3"), "", "there is no such test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := sample(t, map[string]string{"it": c.patch})
			var out strings.Builder
			err := run(context.Background(), &out, root, options{})
			if !strings.Contains(out.String(), c.want) {
				t.Errorf("it printed %q, want %q", &out, c.want)
			}
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("error is %v, want %q", err, c.wrong)
			}
		})
	}
}

func TestOnlySomeMutants(t *testing.T) {
	root := sample(t, map[string]string{"one": change("TestTwo", "2", "3"), "two": change("TestTwo", "2", "4")})
	var out strings.Builder
	if err := run(context.Background(), &out, root, options{only: "^t", list: true}); err != nil || !strings.HasPrefix(out.String(), "two ") ||
		strings.Contains(out.String(), "one") {
		t.Errorf("-only ^t -list prints %q, %v", &out, err)
	}
	if err := run(context.Background(), &out, root, options{only: "three"}); err == nil {
		t.Error("a name that no mutant has is no mistake")
	}
}

func TestCompileFindsThePatchesThatDoNot(t *testing.T) {
	root := sample(t, map[string]string{"sound": change("TestTwo", "2", "3"),
		"two": change("TestTwo", "2", `"two"`), "gone": change("TestTwo", "7", "3")})
	var out strings.Builder
	err := run(context.Background(), &out, root, options{compile: true})
	if err == nil || err.Error() != "2 of 3 mutants do not compile" {
		t.Errorf("error is %v", err)
	}
	for _, want := range []string{"two ", "does not compile", "gone ", "does not apply", "3 mutants, 1 compile, 2 not"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it printed %q, want %q", &out, want)
		}
	}
	if strings.Contains(out.String(), "sound") {
		t.Errorf("it complains of a sound mutant: %q", &out)
	}
}

// Every mutant of the tree can be read, and its patch fits.
func TestMutantsOfTheTreeApply(t *testing.T) {
	const root = "../../.."
	dir := t.TempDir()
	if err := copyTree(root, dir); err != nil {
		t.Fatal(err)
	}
	all, err := readMutants(filepath.Join(root, "tools", "mutants"), regexp.MustCompile(""))
	if err != nil || len(all) < 10 {
		t.Fatalf("%d mutants, want at least 10: %v", len(all), err)
	}
	for _, m := range all {
		if err := patch(t.Context(), dir, m.file, "--check"); err != nil {
			t.Errorf("%s does not apply any more: %v", m.name, err)
		}
	}
}
