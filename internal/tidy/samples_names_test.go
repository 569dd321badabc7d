package tidy

var nameSamples = []sample{
	{
		rule: "package doc", name: "none",
		files: map[string]string{"jobs/a.go": "package jobs\n", "jobs/b.go": "package jobs\n"},
		want:  []string{"jobs/a.go: jobs: no file of this package has a package doc"},
	},
	{
		rule: "package doc", name: "in one file",
		files: map[string]string{"jobs/a.go": "package jobs\n", "jobs/doc.go": "// Package jobs is.\npackage jobs\n"},
	},
	{
		rule: "exported doc", name: "none",
		files: map[string]string{"jobs/a.go": `package jobs

type A struct{ B int }

func C() {}

func (a *A) D() {}

const (
	E = 1
	f = 2
)

var G, h int

// These belong together.
type (
	I int
)

func (l *List[T]) J() {}
`},
		want: []string{
			"jobs/a.go:3: A: exported without a comment", "jobs/a.go:5: C:", "jobs/a.go:7: D:",
			"jobs/a.go:10: E:", "jobs/a.go:14: G:", "jobs/a.go:18: I:", "jobs/a.go:21: J:",
		},
	},
	{
		rule: "exported doc", name: "one each, or nobody sees it",
		files: map[string]string{
			"jobs/a.go": `package jobs

// A is.
type A struct{ B int }

// C does.
func C() {}

func (a *A) String() string { return "" }

func (a *low) D() {}

// These belong together.
const (
	E = 1
	F = 2
)

var (
	G int // is
	// H is.
	H int
)
`,
			"cmd/muster/a.go": "package main\n\nfunc A() {}\n",
			"jobs/a_test.go":  "package jobs\n\nfunc TestA() {}\n",
		},
	},
	{
		rule: "init", name: "one",
		files: map[string]string{"jobs/a_test.go": "package jobs\n\nfunc init() {}\n"},
		want:  []string{"jobs/a_test.go:3: init: it runs before main"},
	},
	{
		rule: "init", name: "a method, a call",
		files: map[string]string{"jobs/a.go": "package jobs\n\nfunc (a *a) init() {}\n\nvar b = a.init()\n"},
	},
	{
		rule: "globals", name: "changed",
		files: map[string]string{
			"jobs/a.go": "package jobs\n\nvar a, b, c = 1, map[int]int{}, d{}\n\nfunc f() { a = 2; b[1] = 3 }\n",
			"jobs/b.go": "package jobs\n\nfunc g() { a++; c.d.e, x := 1, 2; c.d.e = 1 }\n",
		},
		want: []string{
			"jobs/a.go:5: a: a variable of the package is changed", "jobs/a.go:5: b:",
			"jobs/b.go:3: a:", "jobs/b.go:3: c:",
		},
	},
	{
		rule: "globals", name: "read, shadowed, or a test",
		files: map[string]string{
			"jobs/a.go":      "package jobs\n\nvar a = 1\n\nfunc f(b int) int { b = a; a := 3; a = 4; return a }\n",
			"jobs/b.go":      "package jobs\n\nfunc g(a int) { a = 1 }\n",
			"jobs/a_test.go": "package jobs\n\nfunc h() { a = 1 }\n",
		},
	},
	{
		rule: "sleep in tests", name: "one",
		files: map[string]string{
			"jobs/a_test.go": "package jobs\n\nimport \"time\"\n\nfunc a() { time.Sleep(1) }\n",
			"jobs/b_test.go": "package jobs\n\nimport clock \"time\"\n\nvar a = clock.Sleep\n",
		},
		want: []string{"jobs/a_test.go:5: time.Sleep: a test that guesses", "jobs/b_test.go:5: time.Sleep:"},
	},
	{
		rule: "sleep in tests", name: "in a bubble, or no test",
		files: map[string]string{
			"jobs/a_test.go": imports("jobs", "testing/synctest") + "import \"time\"\n\nvar a = time.Sleep\n",
			"jobs/b.go":      "package jobs\n\nimport \"time\"\n\nvar a = time.Sleep\n",
		},
	},
	{
		rule: "file name", name: "a system",
		files: map[string]string{
			"jobs/open_windows.go":      "package jobs\n",
			"jobs/open_windows_test.go": "package jobs\n",
			"server/pages_js.go":        "package server\n",
			"bench/x_linux_arm64.go":    "package bench\n",
		},
		want: []string{
			"bench/x_linux_arm64.go: Go takes _arm64 at the end", "jobs/open_windows.go: Go takes _windows",
			"jobs/open_windows_test.go: Go takes _windows", "server/pages_js.go: Go takes _js",
		},
	},
	{
		rule: "file name", name: "no system",
		files: map[string]string{
			"windows/windows.go":        "package windows\n",
			"windows/windows_test.go":   "package windows\n",
			"windows/windows_open.go":   "package windows\n",
			"server/static/chart_js.js": "",
		},
	},
	{
		rule: "keys", name: "elsewhere",
		files: map[string]string{"worker/a.go": "package worker\n\nconst a = \"muster:{\" + \"hub}:nodes\"\n"},
		want:  []string{"worker/a.go:3: a key of Redis is made here"},
	},
	{
		rule: "keys", name: "in keys.go, in a test, in a comment",
		files: map[string]string{
			"jobs/queue/keys.go":   "package queue\n\nconst a = \"muster:{\"\n",
			"jobs/queue/a.go":      "package queue\n\n// All begin with muster:{zone}.\nconst a = \"muster: {\"\n",
			"jobs/queue/a_test.go": "package queue\n\nconst a = \"muster:{zone}\"\n",
		},
	},
}
