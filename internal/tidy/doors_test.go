package tidy

import (
	"slices"
	"strings"
	"testing"
)

// A door says which rooms may import a foreign library. The packages below a room belong to it.
type door struct {
	lib   string // an import path and all below it
	in    []string
	tests bool // the tests of every room may, too
	why   string
}

// A call is a door for some names of a package that is free otherwise.
type call struct {
	door
	names []string
}

var (
	everywhere = []string{"."}
	loggers    = []string{"worker", "master", "server", "cmd", "internal/demo", "internal/loglines"}
	programs   = []string{"cmd", "cli", "internal/demo"}
)

// doors has a line for every foreign library that the house uses, and for those
// parts of the standard library that are as foreign as one.
var doors = []door{
	{"github.com/redis/go-redis", []string{"jobs/queue", "testkit/redistest"}, false,
		"what is in Redis stays true only if one package writes it"},
	{"github.com/alicebob/miniredis", []string{"internal/demo"}, true,
		"it is the Redis of the demo and of tests, never of production"},
	{"golang.org/x/crypto/ssh", []string{"fleet/remote", "internal/fakefleet", "internal/sshsig",
		"testkit/sshtest"}, false, "each pitfall of SSH is met once; the pretended fleet is the other end of " +
		"the wire, and signatures of people are by their keys of SSH"},
	{"golang.org/x/crypto", []string{"internal/seal"}, true, "secrets are handled by few"},
	{"golang.org/x/mod/sumdb", []string{"audit"}, false, "the tree of the audit log has one form"},
	{"github.com/skeema/knownhosts", []string{"fleet/remote", "internal/fakefleet"}, false,
		"host keys are judged in one place"},
	{"github.com/pkg/sftp", []string{"fleet/remote", "internal/fakefleet"}, false,
		"files reach a host as its commands do"},
	{"github.com/kevinburke/ssh_config", []string{"fleet/remote", "internal/settings", "cmd"}, true,
		"it is configuration"},

	{"database/sql", []string{"history"}, false, "one package knows the tables"},
	{"modernc.org/sqlite", []string{"history"}, false, "one package knows the tables"},
	{"github.com/jackc/pgx", []string{"history"}, false, "one package knows the tables"},
	{"github.com/pressly/goose", []string{"history"}, false, "one package knows the tables"},

	{"net/http", []string{"server", "cmd", "cli", "internal/demo", "internal/sources", "worker/secrets"}, true,
		"the server speaks HTTP, and the CLI to it; an inventory may come from a URL, a secret from Vault"},
	{"filippo.io/age", []string{"worker/secrets", "internal/backupfile"}, true, "secrets are handled by few"},
	{"github.com/danielgtaylor/huma", []string{"server"}, true, "the API is described in one place"},
	{"github.com/coreos/go-oidc", []string{"server/idp"}, false, "one room judges what a provider signs"},
	{"golang.org/x/oauth2", []string{"server/idp"}, false, "one room asks an identity provider"},
	{"github.com/a-h/templ", []string{"server"}, true, "the pages are made in one place"},
	{"github.com/prometheus", []string{"server/metrics", "cmd"}, true, "other rooms return numbers"},
	{"google.golang.org/protobuf", []string{"server/traces", "testkit/otlptest"}, false,
		"the form of traces needs it, and nothing else of ours"},
	{"go.opentelemetry.io", []string{"server/traces", "testkit/otlptest"}, false, "one room knows the form of traces"},
	{"github.com/spf13/cobra", programs, false, "only a program has subcommands"},
	{"github.com/jedib0t/go-pretty", programs, false, "only a program has a screen"},
	{"golang.org/x/term", programs, false, "only a program has a screen"},
	{"github.com/spf13/viper", []string{"internal/settings"}, false,
		"configuration is read once and flows down as values"},
	{"github.com/go-viper/mapstructure", []string{"internal/settings"}, false, "it is a part of viper"},
	{"github.com/spf13/pflag", []string{"internal/settings", "cmd", "cli"}, false,
		"configuration is read once and flows down as values"},
	{"flag", []string{"internal/settings", "cmd"}, true,
		"configuration is read once and flows down as values"},

	{"os/exec", []string{"internal/proc"}, true, "a process must be started, heard and reaped in one way"},
	{"golang.org/x/sys", []string{"internal/proc"}, true, "the system is asked in one place"},

	{"github.com/hashicorp/go-hclog", loggers, true, logWhy},
	{"log", loggers, true, logWhy},

	{"github.com/teambition/rrule-go", []string{"windows"}, false,
		"it is asked about readings only, never about instants"},
	{"github.com/robfig/cron", []string{"windows"}, false, "its traps with zones and dates are met once"},
	{"k8s.io/apimachinery", []string{"fleet"}, false, "the syntax of labels is a matter of selectors"},
	{"mvdan.cc/sh", []string{"scripts", "internal/fakefleet"}, true,
		"quoting is done in one place; a pretended host is where a shell reads it"},
	{"go.yaml.in/yaml", everywhere, true, "whoever owns a format reads it"},
	{"github.com/google/uuid", everywhere, true, "a value, nothing more"},
	{"github.com/cenkalti/backoff", everywhere, true, "a way to count, nothing more"},
	{"golang.org/x/sync", everywhere, true, "the standard library in waiting"},
	{"golang.org/x/time", everywhere, true, "the standard library in waiting"},

	{"github.com/google/go-cmp", nil, true, testWhy},
	{"pgregory.net/rapid", nil, true, testWhy},
	{"go.uber.org/goleak", nil, true, testWhy},
	{"github.com/rogpeppe/go-internal", nil, true, testWhy},
	{"testing", nil, true, testWhy},
}

const (
	logWhy  = "other rooms return errors, so that nothing is said twice"
	testWhy = "what helps tests is not linked into the binary"
)

// calls are the single functions with a door.
var calls = []call{
	{door{"os", []string{"internal/settings", "internal/local", "internal/proc", "cmd", "cli", "internal/demo"}, true,
		"configuration is read once and flows down as values; take it as a field of your Config"},
		[]string{"Getenv", "LookupEnv", "ExpandEnv"}},
	{door{"os", []string{"internal/proc"}, true, "a process must be started, heard and reaped in one way"},
		[]string{"StartProcess", "FindProcess"}},
	{door{"syscall", []string{"internal/proc"}, true, "the raw system is asked in one place"},
		[]string{"Exec", "ForkExec", "StartProcess", "Kill", "Wait4", "Socketpair", "Flock", "CloseOnExec"}},
	{door{"os", []string{"cmd"}, true, "an exit from below skips what others have deferred: return an error"},
		[]string{"Exit"}},
	{door{"os", []string{"internal/files", "internal/proc", "worker/cache"}, true, "a file that a person names " +
		"may be a pipe or a device, which hangs whoever reads it: use internal/files"},
		[]string{"Open", "ReadFile"}},
}

// open says that a file may go through the door.
func (d door) open(f *file) bool {
	if d.tests && f.helpsTests() {
		return true
	}
	return slices.ContainsFunc(d.in, func(room string) bool {
		return room == "." || within(f.dir(), room)
	})
}

func (d door) rooms() string {
	all := slices.Clone(d.in)
	if d.tests {
		all = append(all, "tests")
	}
	return strings.Join(all, ", ")
}

func TestDoorsOpenIntoRooms(t *testing.T) {
	all := slices.Clone(doors)
	for _, c := range calls {
		all = append(all, c.door)
	}
	for _, d := range all {
		if d.why == "" {
			t.Errorf("the door of %s has no reason", d.lib)
		}
		for _, room := range d.in {
			if room != "." && !slices.Contains(knownRooms(), room) && !isTestPackage(room) {
				t.Errorf("the door of %s opens into %s, which is no package with a floor, nor of testkit", d.lib, room)
			}
		}
	}
}

func TestTheMostSpecialDoorCounts(t *testing.T) {
	for p, want := range map[string]string{
		"golang.org/x/crypto/ssh/agent":        "golang.org/x/crypto/ssh",
		"golang.org/x/crypto/chacha20poly1305": "golang.org/x/crypto",
		"log/slog":                             "log",
		"net/http/httptest":                    "net/http",
		"logging":                              "",
	} {
		if d, _ := doorOf(p); d.lib != want {
			t.Errorf("doorOf(%q) = %q, want %q", p, d.lib, want)
		}
	}
}
