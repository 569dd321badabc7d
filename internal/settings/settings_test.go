package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/internal/local"
	"muster/jobs/queue/keys"
)

var here = local.Machine{Host: "here", UID: 0, Agent: "/agent"}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "muster.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The shipped file is the manual: it names every key, with its default.
func TestTheShippedFileShowsEveryDefault(t *testing.T) {
	t.Parallel()
	const shipped = "../../etc/muster.yaml"
	got, err := read(Source{File: shipped}, here)
	if err != nil {
		t.Fatal(err)
	}
	want, err := read(Source{}, here)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the file differs from the defaults (-default +file):\n%s", d)
	}
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range Keys() {
		word := key[strings.LastIndex(key, ".")+1:]
		if !strings.Contains(string(text), word+":") {
			t.Errorf("%s lacks %s", shipped, key)
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	t.Parallel()
	file := write(t, "master: {children: 2, slots: 3, drain: 10s}\ninventory: [a.yaml, b.yaml]\n")
	got, err := read(Source{File: file,
		Env: []string{"MUSTER_MASTER_SLOTS=4", "MUSTER_MASTER_ZONES=zrh,nyc", "MUSTER_URL=x", "HOME=/",
			"MUSTER_SIGN_KEY=x"},
		Flags: map[string]any{"master.drain": time.Minute}}, here)
	if err != nil {
		t.Fatal(err)
	}
	want := Master{Children: 2, Slots: 4, Zones: []string{"zrh", "nyc"}, Drain: time.Minute,
		Poll: 10 * time.Second, Linger: 3 * time.Second, Standby: []string{},
		Governor: Governor{Every: 10 * time.Second, Load: 32,
			Pressure: 40, Memory: 5, Disk: 1, Pids: 5, Files: 5, Ramp: true}}
	if d := cmp.Diff(want, got.Master); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a.yaml", "b.yaml"}, got.Inventory); d != "" {
		t.Error(d)
	}
}

func TestEveryMistakeIsReportedWithItsPlace(t *testing.T) {
	t.Parallel()
	file := write(t, `redis: {url: "ftp://x"}
master:
  childen: 2
  slots: many
  slots: 2
  drain: 5 minutes
  zones: {a: b}
serve: 1
server: 7070
log: {level: loud, format: xml}
`)
	_, err := read(Source{File: file, Env: []string{"MUSTER_MASTER_CHILDREN=x", "MUSTER_MASTR_SLOTS=1"}}, here)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"muster.yaml:3: unknown key master.childen: did you mean master.children?",
		`muster.yaml:4: master.slots = "many": want a whole number`,
		"muster.yaml:5: master.slots stands twice, first in line 4",
		`muster.yaml:6: master.drain = "5 minutes": want a time such as 10s`,
		"muster.yaml:7: master.zones: want a list of words",
		"muster.yaml:8: unknown key serve",
		"muster.yaml:9: top level server: want key: value pairs",
		`environment: MUSTER_MASTER_CHILDREN="x": want a whole number`,
		"environment: MUSTER_MASTR_SLOTS sets no key: did you mean MUSTER_MASTER_SLOTS?",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestValuesOfAllPartsAreChecked(t *testing.T) {
	t.Parallel()
	file := write(t, `redis: {url: "ftp://x", pool: 0}
master: {children: 0, slots: 1000}
log: {level: loud, format: xml}
ssh: {tcp: 0s, keepalive: -1s}
server: {tls: {cert: a.pem}, outliers: {window: 10s, times: 1}}
history: {url: none}
`)
	_, err := read(Source{File: file}, here)
	for _, want := range []string{"redis.url", "redis.pool = 0", "master.children = 0",
		"master.slots = 1000", "log.level", "log.format", "ssh.tcp", "ssh.keepalive", "server.tls",
		"server.outliers.window = 10s", "server.outliers.times = 1", "history.url = none"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"tab":       "redis:\n\turl: x\n",
		"list":      "- a\n- b\n",
		"two":       "redis: {}\n---\nredis: {}\n",
		"half":      "redis: {url: \n",
		"no scalar": "redis: {url: [a]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(Source{File: write(t, text)}, here)
			if err == nil || !strings.Contains(err.Error(), "muster.yaml") {
				t.Errorf("error is %v", err)
			}
		})
	}
	if _, err := read(Source{File: "/nowhere/muster.yaml"}, here); err == nil {
		t.Error("a missing file is no error")
	}
	if _, err := read(Source{File: write(t, "")}, here); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

func TestTheChildGetsItsConfiguration(t *testing.T) {
	t.Parallel()
	s, err := read(Source{Flags: map[string]any{"redis.url": "redis://:secret@127.0.0.1:1/0",
		"master.slots": 7}}, here)
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.ForChild(keys.RoleServer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseChild(data)
	if err != nil {
		t.Fatal(err)
	}
	if c.Redis.URL != "redis://:secret@127.0.0.1:1/0" || c.Worker.Slots != 7 || c.As != keys.RoleServer ||
		c.SSH.TCP != s.SSH.TCP {
		t.Errorf("child has %+v", c)
	}
	if _, err := ParseChild([]byte("{")); err == nil {
		t.Error("half a configuration was accepted")
	}
}

func TestWhereANodeKeepsItsLocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m    local.Machine
		want string
	}{
		{local.Machine{UID: 0, Runtime: "/run/user/0"}, "/run/muster"},
		{local.Machine{UID: 7, Runtime: "/run/user/7"}, "/run/user/7/muster"},
		{local.Machine{UID: 7}, "/tmp/muster-7"},
		{local.Machine{UID: 990, User: "muster"}, "/run/muster"},
	} {
		if got := c.m.NodeDir(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.m, got, c.want)
		}
	}
}

func TestWhereAServerListensAndIsLookedFor(t *testing.T) {
	t.Parallel()
	const system = "/run/muster-server/api.sock"
	for _, c := range []struct {
		m    local.Machine
		want []string
	}{
		{local.Machine{UID: 0, Runtime: "/run/user/0"}, []string{system}},
		{local.Machine{UID: 990, User: "muster"}, []string{system}},
		{local.Machine{UID: 7, User: "alice", Runtime: "/run/user/7"}, []string{"/run/user/7/muster-server/api.sock",
			system}},
		{local.Machine{UID: 7}, []string{"/tmp/muster-server-7/api.sock", system}},
	} {
		if d := cmp.Diff(c.want, c.m.Sockets()); d != "" {
			t.Errorf("%+v: %s", c.m, d)
		}
		c.m.Host = "here"
		s, err := read(Source{}, c.m)
		if err != nil || !slices.Equal(s.Server.Listen, []string{"unix:" + c.want[0]}) {
			t.Errorf("%+v listens on %s, %v", c.m, s.Server.Listen, err)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("master: {children: 2}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parseFile("f", data, defaults(here))
	})
}

// The places at which a server listens are a list, in any form in which people write one.
func TestPlacesAreAList(t *testing.T) {
	t.Parallel()
	want := []string{"unix:/run/a.sock", "127.0.0.1:7070"}
	for name, src := range map[string]Source{
		"a list":           {File: write(t, "server: {listen: [unix:/run/a.sock, 127.0.0.1:7070]}\n")},
		"a text":           {File: write(t, "server: {listen: 'unix:/run/a.sock,127.0.0.1:7070'}\n")},
		"blanks":           {File: write(t, "server: {listen: 'unix:/run/a.sock, 127.0.0.1:7070'}\n")},
		"a variable":       {Env: []string{"MUSTER_SERVER_LISTEN=unix:/run/a.sock,127.0.0.1:7070"}},
		"a flag with both": {Flags: map[string]any{"server.listen": "unix:/run/a.sock,127.0.0.1:7070"}},
	} {
		s, err := read(src, here)
		if err != nil || !slices.Equal(s.Server.Listen, want) {
			t.Errorf("%s: %q, %v", name, s.Server.Listen, err)
		}
	}
}
