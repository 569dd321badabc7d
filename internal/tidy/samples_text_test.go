package tidy

// The words that the rules look for are put together here: as they stand, this
// file would break the rules itself.
const (
	todo = "TO" + "DO"
	hush = "//" + "nolint"
	ours = "/wo" + "rk/"
)

var textSamples = []sample{
	{
		rule: "unfinished", name: "without an issue",
		files: map[string]string{
			"jobs/a.go":          "package jobs\n\n/* One.\n" + todo + " two. */\n",
			"jobs/queue/lua/a.l": todo,
			"jobs/queue/a.lua":   "-- one\n-- " + "FIX" + "ME later\n",
			"Makefile":           "# " + "XX" + "X\n",
		},
		want: []string{
			"Makefile:1: " + "XX" + "X: without the number",
			"jobs/a.go:4: " + todo + ": without the number of an issue", "jobs/queue/a.lua:2: FIX" + "ME:",
		},
	},
	{
		rule: "unfinished", name: "with one, or another word",
		files: map[string]string{
			"jobs/a.go":  "package jobs\n\n// " + todo + "(#12): two.\nconst a = \"" + todo + "\"\n",
			"tools/a.sh": "mktemp /tmp/a.XX" + "XXXX\n",
		},
	},
	{
		rule: "silenced", name: "a linter",
		files: map[string]string{"jobs/a.go": "package jobs\n\nvar a = b() " + hush + "\n"},
		want:  []string{"jobs/a.go:3: " + hush + ": a linter is silenced"},
	},
	{
		rule: "silenced", name: "nothing",
		files: map[string]string{"jobs/a.go": "package jobs\n\nvar a = \"" + hush + "\" // is\n"},
	},
	{
		rule: "short documents", name: "long",
		files: map[string]string{"README.md": lines(121, "a"), "CONTRIBUTING.md": lines(81, "a")},
		want:  []string{"CONTRIBUTING.md: 81 lines, at most 80", "README.md: 121 lines, at most 120"},
	},
	{
		rule: "short documents", name: "short",
		files: map[string]string{"README.md": lines(120, "a"), "docs/README.md": lines(300, "a")},
	},
	{
		rule: "machine paths", name: "in any text",
		files: map[string]string{"etc/a.yaml": "a: 1\nkey: " + ours + "a\n", "bench/a.go": "// " + ours + ".b\n"},
		want:  []string{"bench/a.go:1: " + ours + ".: a path of the machine", "etc/a.yaml:2: " + ours + "a:"},
	},
	{
		rule: "machine paths", name: "a free one",
		files: map[string]string{"etc/a.yaml": "key: /srv/a\nold: " + ours + "\n"},
	},
}
