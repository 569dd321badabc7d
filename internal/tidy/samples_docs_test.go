package tidy

var docSamples = []sample{
	{
		rule: "tests in docs", name: "there is none",
		files: map[string]string{
			"docs/A.md":      "one `TestGone`\n`go test -run TestOther` `TestN*`\n",
			"jobs/a_test.go": "package jobs\n\nfunc TestOne(t *testing.T) {}\n",
		},
		want: []string{"docs/A.md:1: TestGone: no test", "docs/A.md:2: TestOther: no test", "docs/A.md:2: TestN: "},
	},
	{
		rule: "tests in docs", name: "there is one",
		files: map[string]string{
			"docs/A.md":      "`TestOne`, `go test -run TestO`, `TestO*`, Tests\n",
			"jobs/a_test.go": "package jobs\n\nfunc TestOne(t *testing.T) {}\n",
		},
	},
	{
		rule: "links in docs", name: "to nowhere",
		files: map[string]string{
			"README.md": "[a](docs/B.md) [a](docs/A.md#two)\n", "docs/A.md": "# One\n[b](../etc/b.yaml) [c](#two)\n",
		},
		want: []string{"README.md:1: docs/B.md: there is no", "README.md:1: docs/A.md#two: docs/A.md has no heading",
			"docs/A.md:2: ../etc/b.yaml: ", "docs/A.md:2: #two: docs/A.md has no"},
	},
	{
		rule: "links in docs", name: "to a place",
		files: map[string]string{
			"README.md": "[a](docs) [a](docs/A.md#keys-of-a-steps-retry) [x](https://example.com/#x)\n",
			"docs/A.md": "## Keys of a step's `retry`\n[up](../README.md) [here](#keys-of-a-steps-retry)\n",
		},
	},
	{
		rule: "paths in docs", name: "gone",
		files: map[string]string{"docs/A.md": "`jobs/b.go`\n", "jobs/a.lua": "x\n"},
		want:  []string{"docs/A.md:1: jobs/b.go: there is no such file"},
	},
	{
		rule: "paths in docs", name: "there, or of another machine",
		files: map[string]string{"docs/A.md": "`jobs/a.lua` `/etc/muster/a.yaml` `a/b.go`\n", "jobs/a.lua": "x\n"},
	},
	{
		rule: "targets in docs", name: "gone",
		files: map[string]string{"A.md": "`make dmo`\n    make tst\n", "Makefile": "demo: ## x\n"},
		want:  []string{"A.md:1: make dmo: the Makefile has no", "A.md:2: make tst:"},
	},
	{
		rule: "targets in docs", name: "there, or no command",
		files: map[string]string{"A.md": "`make demo`\nto make dmo\n", "Makefile": "demo: ## x\n"},
	},
	{
		rule: "keys in docs", name: "gone",
		files: map[string]string{
			"docs/A.md": "`overload.aftr` and `redis.tls.crt: x`\n", "etc/muster.yaml": settings,
		},
		want: []string{"docs/A.md:1: overload.aftr: etc/muster.yaml has no", "docs/A.md:1: redis.tls.crt: "},
	},
	{
		rule: "keys in docs", name: "there, or something else",
		files: map[string]string{
			"docs/A.md":       "`overload.after`, `redis.tls.cert: x`, `redis.url`, `log.level`, `a.b`, `worker.go`\n",
			"etc/muster.yaml": settings,
		},
	},
}

const settings = "redis:\n  # Where.\n  url: x\n  tls:\n    cert: x\noverload:\n  # after: 10s\nlog: {}\n"
