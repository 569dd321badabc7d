package tidy

import "strings"

// lines makes so many lines of one text.
func lines(n int, text string) string { return strings.Repeat(text+"\n", n) }

// function makes a function of so many lines.
func function(n int) string { return "func long() {\n" + lines(n-2, "\tf()") + "}\n" }

var sizeSamples = []sample{
	{
		rule: "file length", name: "long",
		files: map[string]string{
			"jobs/hint.go": "package jobs\n" + lines(400, "// a"),
			"jobs/hard.go": "package jobs\n" + lines(600, "// a"),
		},
		want: []string{"jobs/hard.go: 601 lines, want 400, at most 600", "hint: jobs/hint.go: 401 lines"},
	},
	{
		rule: "file length", name: "short",
		files: map[string]string{"jobs/a.go": "package jobs\n" + lines(399, "// a")},
	},
	{
		rule: "function length", name: "long",
		files: map[string]string{
			"jobs/a.go":      "package jobs\n\n" + function(71),
			"jobs/a_test.go": "package jobs\n\n" + function(71),
			"jobs/b.go":      "package jobs\n\n" + function(61),
			"jobs/c.go":      "package jobs\n\nfunc table() {\n\tx := []int{\n" + lines(70, "\t\t1,") + "\t}\n}\n",
		},
		want: []string{
			"jobs/a.go:3: long: 71 lines, want 60, at most 70",
			"jobs/a_test.go:3: long: 71 lines",
			"hint: jobs/b.go:3: long: 61 lines",
			"jobs/c.go:3: table: 74 lines",
		},
	},
	{
		rule: "function length", name: "short, or a table of a test",
		files: map[string]string{
			"jobs/a.go":      "package jobs\n\n" + function(60),
			"jobs/a_test.go": "package jobs\n\nfunc table() {\n\tx := []int{\n" + lines(70, "\t\t1,") + "\t}\n}\n",
		},
	},
	{
		rule: "parameters", name: "many",
		files: map[string]string{"jobs/a.go": "package jobs\n\nfunc a(b, c, d, e, f int) {}\n\n" +
			"type i interface{ m(int, int, int, int, ...int) }\n"},
		want: []string{"jobs/a.go:3: 5 parameters, at most 4", "jobs/a.go:5: 5 parameters"},
	},
	{
		rule: "parameters", name: "four after the context or the test",
		files: map[string]string{
			"jobs/a.go":      "package jobs\n\nfunc a(ctx context.Context, b, c, d, e int) {}\n",
			"jobs/a_test.go": "package jobs\n\nfunc a(t *testing.T, b, c, d, e int) {}\n",
		},
	},
	{
		rule: "fields", name: "many",
		files: map[string]string{
			"jobs/a.go": "package jobs\n\ntype a struct {\n" + lines(8, "\tb, c int") + "}\n\n" +
				"type Config struct {\n" + lines(21, "\tb int") + "}\n",
		},
		want: []string{"jobs/a.go:3: 16 fields, at most 15", "jobs/a.go:14: 21 fields, at most 20"},
	},
	{
		rule: "fields", name: "enough",
		files: map[string]string{
			"jobs/a.go": "package jobs\n\ntype a struct {\n" + lines(15, "\tb int") + "}\n\n" +
				"type DialConfig struct {\n" + lines(20, "\tb int") + "}\n",
		},
	},
	{
		rule: "nesting", name: "deep",
		files: map[string]string{"jobs/a.go": "package jobs\n\nfunc deep() {\n\tif a {\n\t\tif a {\n\t\t\tif a {\n" +
			"\t\t\t\tif a {\n\t\t\t\t\tf()\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t}\n}\n"},
		want: []string{"hint: jobs/a.go:8: deep: a statement 5 tabs deep, want 4"},
	},
	{
		rule: "nesting", name: "flat",
		files: map[string]string{"jobs/a.go": "package jobs\n\nfunc flat() {\n\tif a {\n\t\tif a {\n\t\t\tif a {\n" +
			"\t\t\t\tf()\n\t\t\t}\n\t\t}\n\t}\n}\n"},
	},
	{
		rule: "line length", name: "wide",
		files: map[string]string{
			"jobs/a.go":      "package jobs\n\n// " + strings.Repeat("a ", 49) + "\n",
			"jobs/b.go":      "package jobs\n\nfunc a() {\n\tb(" + strings.Repeat("1, ", 31) + "1234)\n}\n",
			"jobs/a_test.go": "package jobs\n\n// " + strings.Repeat("a ", 59) + "\n",
		},
		want: []string{
			"jobs/a.go:3: 101 columns, at most 100",
			"jobs/a_test.go:3: 121 columns, at most 120",
			"jobs/b.go:4: 101 columns",
		},
	},
	{
		rule: "line length", name: "narrow, or nobody can break it",
		files: map[string]string{
			"jobs/a.go":      "package jobs\n\n// " + strings.Repeat("é", 97) + "\n",
			"jobs/b.go":      "package jobs\n\n// https://example.com/" + strings.Repeat("a", 97) + "\n",
			"jobs/c.go":      "package jobs\n\nconst a = `\n" + strings.Repeat("a ", 97) + "\n`\n",
			"jobs/d.go":      "package jobs\n\ntype a struct {\n\tb int `json:\"" + strings.Repeat("b ", 50) + "\"`\n}\n",
			"jobs/a_test.go": "package jobs\n\n// " + strings.Repeat("a ", 58) + "\n",
		},
	},
}
