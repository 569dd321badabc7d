package repofile_test

import (
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/internal/manifest"
	"muster/internal/repofile"
	"muster/jobs"
	"muster/windows"
)

func parse(text string) (*repofile.Set, error) {
	return repofile.Parse(fleet.Source{Name: "r.yaml", Data: []byte(text)})
}

func TestAFileOfRepositoriesIsRead(t *testing.T) {
	t.Parallel()
	set, err := parse(`git_user: git
repositories:
- name: rules
  url: ssh://git@git.example.org:22/acme/rules.git
  branch: team/acme
  path: conf/muster
  every: 30s
  event_source: forge
  key: /etc/muster/git/key
  known_hosts: /etc/muster/git/known_hosts
  signers: /etc/muster/git/allowed_signers
  customers: [acme, duck]
  kinds: [window]
- {name: house, url: "file:///srv/git/house.git", customers: all, empty: true}
`)
	if err != nil {
		t.Fatal(err)
	}
	one, _ := set.Of("git:rules")
	other, found := set.Find("house")
	if set.User() != "git" || one.Branch != "team/acme" || one.Every != 30*time.Second ||
		one.From != "forge" || one.Signers == "" || len(one.Customers) != 2 || len(one.Kinds) != 1 ||
		!found || other.Customers != nil || other.Branch != "main" || !other.Empty || len(other.Kinds) != 3 {
		t.Errorf("%+v, %+v", one, other)
	}
	if _, is := set.Of("rules"); is {
		t.Error("an origin without git: is none of a repository")
	}
}

// Every mistake has its line and says what is wanted.
func TestMistakesOfAFileOfRepositoriesAreNamed(t *testing.T) {
	t.Parallel()
	one := func(fields string) string { return "repositories:\n- {name: a, customers: all, " + fields + "}\n" }
	ssh := `, key: /k, known_hosts: /h`
	for text, want := range map[string]string{
		"repositories: {}":                                              "r.yaml:1: repositories is a mapping: want a list",
		"repositories:\n- {name: a}":                                    "r.yaml:2: a repository needs url",
		"repositories:\n- {url: 'file:///a', name: a}":                  "needs customers: want all, or a list of names",
		one(`url: "ext::sh -c id"`):                                     "want https://host/path, ssh://user@host/path or",
		one(`url: "git@host:path"`):                                     "want https://host/path",
		one(`url: "http://host/path"`):                                  "want https://host/path",
		one(`url: "file://host/path"`):                                  "want https://host/path",
		one(`url: "ssh://-oProxyCommand=id/path"` + ssh):                "want https://host/path",
		one(`url: "ssh://git:pw@host/path"` + ssh):                      "it has a user or a password in it",
		one(`url: "https://tok@host/path"`):                             "it has a user or a password in it",
		one(`url: "file:///a/../b"`):                                    "its path has more than",
		one(`url: "file:///a;b"`):                                       "its path has more than",
		one(`url: "ssh://git@host/path"`):                               "want key and known_hosts",
		one(`url: "file:///a", key: /k`):                                "key and known_hosts are for ssh only",
		one(`url: "file:///a", login_file: /k`):                         "login_file and ca_file are for https only",
		one(`url: "file:///a", signers: "/a b"`):                        "signers: \"/a b\": want the absolute path",
		one(`url: "file:///a", signers: a`):                             "want the absolute path of a file",
		one(`url: "file:///a", branch: "-x"`):                           `branch: "-x": want the name of a branch`,
		one(`url: "file:///a", branch: "a..b"`):                         `branch: "a..b": want the name of a branch`,
		one(`url: "file:///a", path: "../x"`):                           "want a folder of the repository",
		one(`url: "file:///a", path: "/x"`):                             "want a folder of the repository",
		one(`url: "file:///a", every: 1s`):                              "every: \"1s\": want a time from 5s to 24h0m0s",
		one(`url: "file:///a", kinds: [bee]`):                           `kinds: "bee": want some of runbook, schedule`,
		one(`url: "file:///a", work: tree`):                             `unknown key "work"`,
		one(`url: "file:///a", empty: maybe`):                           `empty: "maybe": want true or false`,
		"repositories:\n- {name: a, url: 'file:///a', customers: []}":   "customers is empty",
		"repositories:\n- {name: a, url: 'file:///a', customers: some}": "customers is a single value: want a list",
		"repositories:\n- {name: a, url: 'file:///a', customers: all}\n- {name: a, url: 'file:///b', " +
			"customers: all}": "r.yaml:3: repository a is there already, at line 2",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %q", text, err, want)
		}
	}
}

// A branch changes entries of its customers only, and their schedules pick their hosts only.
func TestABranchChangesEntriesOfItsCustomersOnly(t *testing.T) {
	t.Parallel()
	set, err := parse("repositories:\n- {name: a, url: 'file:///a', customers: [acme]}\n" +
		"- {name: b, url: 'file:///a', customers: all, kinds: [window]}\n")
	if err != nil {
		t.Fatal(err)
	}
	acme, house := set.All()[0], set.All()[1]
	schedule := func(owner, on string) string {
		if owner != "" {
			owner = "owner: " + owner + "\n"
		}
		return "kind: schedule\nname: s\ncron: \"@daily\"\nzone: UTC\nrunbook: exec\nargs: {cmd: id}\n" +
			"on: \"" + on + "\"\n" + owner
	}
	window := func(whose string) string {
		return "kind: window\nname: w\n" + whose + "\nzone: UTC\nstart: every Sunday 02:00\nlength: 2h\n"
	}
	for _, c := range []struct {
		by   repofile.Repository
		text string
		want string
	}{
		{acme, schedule("acme", "customer=acme"), ""},
		{acme, schedule("acme", "customer=acme,role in (fw,vpn),!drained"), ""},
		{acme, schedule("duck", "customer=duck"), "this one is of customer duck"},
		{acme, schedule("", "customer=acme"), "this one is of the whole house"},
		{acme, window("customer: acme"), ""},
		{acme, window("customer: duck"), "f.yaml:1: window w: repository a may change entries of customer " +
			"acme only, and this one is of customer duck"},
		{acme, window("group: core"), "this one is of the whole house"},
		{house, window("group: core"), ""},
		{house, schedule("acme", "all"), "may change window only"},
	} {
		s, err := manifest.Read(manifest.Input{Files: []windows.File{{Name: "f.yaml", Content: c.text}},
			Rollout: jobs.CheckRollout})
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		got := c.by.May(s.Entries[0])
		if c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)) {
			t.Errorf("%s\ngot %v, want %q", c.text, got, c.want)
		}
	}
}
