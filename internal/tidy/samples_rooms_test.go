package tidy

import (
	"fmt"
	"strings"
)

// methods makes so many methods of a type, of so many lines each.
func methods(of string, n, long int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "func (x *%s) m%d() {\n%s}\n", of, i, lines(long-2, "\tf()"))
	}
	return text.String()
}

// struct10 makes a struct with ten fields, and more lines in it.
func struct10(name, more string) string {
	return "type " + name + " struct {\n\ta, b, c, d, e, f, g, h, i, j int\n" + more + "}\n"
}

func words(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }

var roomSamples = []sample{
	{
		rule: "rooms in ARCHITECTURE", name: "not as the tree",
		files: map[string]string{
			architecture:  "| 2 | `jobs` | words |\n| 1 | `gone` | x |\n",
			"jobs/a.go":   "package jobs\n",
			"master/a.go": "package master\n",
		},
		want: []string{"docs/ARCHITECTURE.md:1: jobs: the page says floor 2, the table of floors in internal/tidy " +
			"says 1", "docs/ARCHITECTURE.md:2: gone: there is no such room", "master/a.go: master: docs/ARCH"},
	},
	{
		rule: "rooms in ARCHITECTURE", name: "as the tree",
		files: map[string]string{
			architecture: "| floor | package |\n| 1 | `jobs` | words |\n| – | `jobs/jobstest` | x |\n",
			"jobs/a.go":  "package jobs\n", "jobs/jobstest/a.go": "package jobstest\n",
		},
	},
}

var ratchetSamples = []sample{
	{
		rule: "methods of a type", name: "many, and more than they were",
		files: map[string]string{
			"jobs/a.go": "package jobs\n\ntype a int\n\n" + methods("a", 41, 2), "jobs/b.go": "package jobs\n\n" +
				"type b int\n\n" + methods("b", 43, 2),
			ratchets: "methods of a type jobs.b 42\nmethods of a type jobs.c 50\n",
		},
		want: []string{"internal/tidy/ratchets.txt: jobs.c: this is within its limit",
			"jobs/a.go:3: jobs.a: 41 methods, at most 40", "jobs/b.go:3: jobs.b: 43 methods, 42 when it was"},
	},
	{
		rule: "methods of a type", name: "no more than they were, or of a test",
		files: map[string]string{
			"jobs/a.go":      "package jobs\n\ntype a int\n\n" + methods("a", 41, 2),
			"jobs/b.go":      "package jobs\n\ntype b int\n\n" + methods("b", 40, 2),
			"jobs/c_test.go": "package jobs\n\ntype c int\n\n" + methods("c", 41, 2),
			ratchets:         "# a table\nmethods of a type jobs.a 41\n",
		},
	},
	{
		rule: "methods of a type", name: "fewer than they were",
		files: map[string]string{
			"jobs/a.go": "package jobs\n\ntype a int\n\n" + methods("a", 41, 2), ratchets: "methods of a type jobs.a 50\n",
		},
		want: []string{"hint: jobs/a.go:3: jobs.a: 41 methods, fewer than the 50 of"},
	},
	{
		rule: "lines of a type", name: "long",
		files: map[string]string{"jobs/a.go": "package jobs\n\ntype a int\n\n" + methods("a", 10, 100)},
		want:  []string{"jobs/a.go:3: jobs.a: 1001 lines with its methods, at most 1000"},
	},
	{
		rule: "lines of a type", name: "long enough",
		files: map[string]string{"jobs/a.go": "package jobs\n\ntype a int\n\n" + methods("a", 9, 100)},
	},
	{
		rule: "files of a type", name: "chapters",
		files: map[string]string{
			"jobs/a.go": "package jobs\n\ntype a[T any] int\n", "jobs/b.go": "package jobs\n\n" + methods("a[T]", 1, 2),
			"jobs/c.go": "package jobs\n\n" + methods("a[T]", 1, 2), "jobs/d.go": "package jobs\n\n" + methods("a[T]", 1, 2),
			"jobs/e.go": "package jobs\n\n" + methods("a[T]", 1, 2), "jobs/f.go": "package jobs\n\n" + methods("a[T]", 1, 2),
			"jobs/g.go": "package jobs\n\n" + methods("a[T]", 1, 2),
		},
		want: []string{"jobs/a.go:3: jobs.a: 7 files, at most 6"},
	},
	{
		rule: "files of a type", name: "one",
		files: map[string]string{"jobs/a.go": "package jobs\n\ntype a int\n\n" + methods("a", 1, 2)},
	},
	{
		rule: "fields in all", name: "embedded ones, of other rooms too",
		files: map[string]string{
			"jobs/a.go":   "package jobs\n\n" + struct10("A", "\tB\n") + "\n" + struct10("B", ""),
			"master/a.go": "package master\n\nimport \"muster/jobs\"\n\ntype c struct {\n\t*jobs.A\n\tk int\n}\n",
		},
		want: []string{"master/a.go:5: master.c: 21 fields with those of what it embeds, at most 20"},
	},
	{
		rule: "fields in all", name: "few, and what is embedded from elsewhere",
		files: map[string]string{
			"jobs/a.go": "package jobs\n\nimport \"sync\"\n\n" + struct10("A", "\tsync.Mutex\n\tB\n\t*A\n") + "\n" +
				"type B int\n",
		},
	},
	{
		rule: "methods of a user", name: "many, embedded",
		files: map[string]string{"jobs/a.go": "package jobs\n\ntype a interface {\n\ta()\n\tb()\n\tc()\n\tb2\n}\n\n" +
			"type b2 interface {\n\td()\n\te()\n\tf()\n\tg()\n}\n"},
		want: []string{"jobs/a.go:3: jobs.a: 7 methods with those of what it embeds, at most 6"},
	},
	{
		rule: "methods of a user", name: "few",
		files: map[string]string{"jobs/a.go": "package jobs\n\ntype a interface {\n\ta()\n\tio.Reader\n}\n"},
	},
	{
		rule: "lines of a package", name: "long",
		files: map[string]string{"jobs/a.go": "package jobs\n" + lines(2500, "// a")},
		want:  []string{"jobs/a.go: jobs: 2501 lines that are not tests, at most 2500"},
	},
	{
		rule: "lines of a package", name: "of tests",
		files: map[string]string{"jobs/a_test.go": "package jobs\n" + lines(2500, "// a")},
	},
	{
		rule: "files of a folder", name: "many",
		files: many(26, "jobs/a%d.go"),
		want:  []string{"jobs/a0.go: jobs: 26 files that are not tests, at most 25"},
	},
	{
		rule: "files of a folder", name: "of tests",
		files: many(26, "jobs/a%d_test.go"),
	},
	{
		rule: "plain words", name: "riddles",
		files: map[string]string{
			"jobs/a.go": "package jobs\n\n// a is what it is\n// when it is no matter if\n" +
				"var a = 1 // tells whether it is\n",
			"jobs/lua/a.lua": "-- Who comes late is put behind.\nlocal x = 'Who is'\n",
		},
		want: []string{"jobs/a.go:3: jobs: 3 riddling forms, the first of them here, at most 0",
			"jobs/lua/a.lua:1: jobs/lua: 1 riddling forms"},
	},
	{
		rule: "plain words", name: "plain",
		files: map[string]string{
			"jobs/a.go": "package jobs\n\n// a reports whether the job is done. The rest waits.\nvar a = 1\n",
		},
	},
	{
		rule: "paragraphs in docs", name: "a wall",
		files: map[string]string{"docs/A.md": "# A\n\n" + words(60) + "\n" + words(61) + "\n\n" + words(121) + "\n"},
		want:  []string{"docs/A.md:3: docs/A.md: 2 paragraphs of more than 120 words, the first of them here, at most 0"},
	},
	{
		rule: "paragraphs in docs", name: "short, a list, code, a table",
		files: map[string]string{"docs/A.md": words(120) + "\n\n- " + words(100) + "\n- " + words(100) + "\n\n```\n" +
			words(130) + "\n```\n| " + words(130) + " |\n"},
	},
	{
		rule: "cells in docs", name: "long",
		files: map[string]string{"docs/A.md": "| a | b |\n|---|---|\n| a | " + words(41) + " |\n"},
		want:  []string{"docs/A.md:3: docs/A.md: 1 cells of more than 40 words"},
	},
	{
		rule: "cells in docs", name: "short",
		files: map[string]string{"docs/A.md": "| " + words(30) + " | " + words(30) + " |\n\n" + words(50) + "\n"},
	},
	{
		rule: "line length of pages", name: "wide",
		files: map[string]string{"docs/A.md": strings.Repeat("é", 161) + "\n"},
		want:  []string{"docs/A.md:1: docs/A.md: 1 lines of more than 160 columns"},
	},
	{
		rule: "line length of pages", name: "narrow, or a table",
		files: map[string]string{"docs/A.md": strings.Repeat("é", 160) + "\n| " + words(50) + " |\n"},
	},
}

// many makes so many empty files of a package.
func many(n int, name string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf(name, i)] = "package jobs\n"
	}
	return files
}
