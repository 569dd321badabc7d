package sources_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/fleet"
	"muster/internal/sources"
)

const (
	keyA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBEXwyoh5iqF2LwXfVlSFCTn9eezaetBSn2TWzW6b1ND"
	keyB = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP+c/FYVxRkynBNfqFyPPnet2XBRqf+GTV1O2h823OVD"
)

// place is a folder with files.
type place struct {
	t   *testing.T
	dir string
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

// write writes a file by rename, as editors do. A text that begins with #! becomes a program.
func (p place) write(name, text string) string {
	p.t.Helper()
	path := p.path(name)
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path+".new", []byte(text), mode)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return path
}

// now is long after all that the tests write.
func now() time.Time { return time.Now().Add(time.Hour) }

func (p place) sources(list ...string) *sources.Sources {
	return sources.New(sources.Config{List: list, Every: 30 * time.Second,
		KnownHosts: []string{p.path("none"), p.path("known_hosts")}, Home: "/home/ops"})
}

func read(t *testing.T, s *sources.Sources, at time.Time) *fleet.Inventory {
	t.Helper()
	inv, err := s.Read(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func names(inv *fleet.Inventory) string {
	var list []string
	for _, h := range inv.Hosts() {
		list = append(list, h.Name)
	}
	return fleet.Fold(list)
}

func own(names ...string) string {
	text := "hosts:\n"
	for _, n := range names {
		text += fmt.Sprintf("- {name: %s, address: x, host_key: %q}\n", n, keyA)
	}
	return text
}

const list = `{"_meta": {"hostvars": {}}, "web": {"hosts": ["p1", "p2"]}}`

func TestSeveralSources(t *testing.T) {
	t.Parallel()
	p := place{t, t.TempDir()}
	p.write("known_hosts", "x "+keyB+"\n")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" || r.URL.Path != "/hosts" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, own("url1"))
	}))
	defer web.Close()
	p.write("inv/10-hosts", "[web]\nw1\n[db]\nd1 ansible_host=x\n")
	p.write("inv/20-more.yml", "web: {hosts: {w2: }}")
	p.write("inv/sub/own.yaml", own("o1"))
	p.write("inv/README.md", "not a host")
	p.write("inv/ansible.cfg", "[defaults]")
	p.write("inv/.hidden", "hidden")
	p.write("inv/group_vars/web.yml", "ansible_user: www")
	p.write("inv/group_vars/db/10.yml", "ansible_user: db")
	p.write("inv/group_vars/db/20.txt", "{not yaml")
	p.write("inv/host_vars/w2.yml~", "{not yaml")
	p.write("inv/host_vars/w2", "ansible_port: 2222")
	s := p.sources(p.write("fleet.yaml", own("own1")), p.path("inv"),
		p.write("cmdb", "#!/bin/sh\necho '"+list+"'\n"),
		web.URL+"/hosts#token="+p.write("token", "s3cret\n"))
	inv := read(t, s, now())
	if got := names(inv); got != "d1,o1,own1,p[1-2],url1,w[1-2]" {
		t.Error(got)
	}
	got := map[string]string{}
	for _, h := range inv.Hosts() {
		got[h.Name] = fmt.Sprint(h.User, " ", h.Port, " ", len(h.HostKeys))
	}
	for name, want := range map[string]string{"w1": "www 22 0", "w2": "www 2222 0", "d1": "db 22 1",
		"own1": "root 22 1"} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	if d1, _ := inv.Host("d1"); d1.HostKeys[0] != keyB {
		t.Error(d1.HostKeys)
	}
	without := sources.WithoutKey(inv)
	if len(without) != 4 || !strings.HasPrefix(without[0].Error(), p.path("cmdb")+":1: host p1 has no host key") {
		t.Error(without)
	}
}

func TestMistakesOfSources(t *testing.T) {
	t.Parallel()
	p := place{t, t.TempDir()}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
		case "/on":
			http.Redirect(w, r, "/hosts", http.StatusFound)
		case "/text":
			fmt.Fprint(w, "try again later")
		case "/cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "hosts: []")
		}
	}))
	defer web.Close()
	if err := os.Mkdir(p.path("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		p.path("missing"): "missing: no such file",
		p.path("empty"):   "has no inventory file in it",
		p.write("fails", "#!/bin/sh\necho no database >&2\nexit 3\n"): "fails: exit status 3: no database",
		p.write("text", "#!/bin/sh\necho ok\n"):                       "text: prints neither JSON nor YAML",
		p.write("bad", "#!/bin/sh\necho '{\"all\":'\n"):               "bad:1: not valid JSON",
		p.write("endless", "#!/bin/sh\nexec yes\n"):                   "endless: prints more than",
		p.write("binary.yaml", "\x7fELF\x02\x01\x01\x00\x00"):         "binary.yaml is a binary file: want text in UTF-8",
		web.URL + "/gone":                    "/gone: answers 404 Not Found: want 200 OK",
		web.URL + "/on":                      "/on: it sends on to",
		web.URL + "/text":                    "/text: prints neither JSON nor YAML",
		web.URL + "/cut":                     "/cut: unexpected EOF",
		"http://127.0.0.1:1/":                "connection refused",
		web.URL + "/x#token=/does/not/exist": "token: open /does/not/exist",
		"http://cmdb.example.com/":           "comes over https only",
		"https://me:pw@cmdb.example.com/":    "https://me:xxxxx@cmdb.example.com/: it has a user or password",
		"https://cmdb.example.com/#tok=x":    "want token=/path",
	} {
		s := p.sources(source, p.write("good.yaml", own("a")))
		if inv, err := s.Read(t.Context(), now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", source, inv, err, want)
		}
	}
	if err := os.Chmod(p.write("open", "#!/bin/sh\necho >ran"), 0o757); err != nil {
		t.Fatal(err)
	}
	_, err := p.sources(p.path("open")).Read(t.Context(), now())
	if _, ran := os.Stat(p.path("ran")); err == nil || !strings.Contains(err.Error(), "everybody") || ran == nil {
		t.Error(err, ran)
	}
	s := p.sources(p.path("missing"), p.path("fails"), p.path("empty"))
	if _, err := s.Read(t.Context(), now()); strings.Count(fmt.Sprint(err), "\n") != 2 {
		t.Errorf("not all at once: %v", err)
	}
	s = p.sources(p.write("k.yaml", "hosts: [{name: a, address: x, known_hosts: "+p.path("nowhere")+"}]"))
	if _, err := s.Read(t.Context(), now()); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Error(err)
	}
}

func TestAProgramHasACleanEnvironmentAndAnEnd(t *testing.T) {
	p := place{t, t.TempDir()}
	t.Setenv("MUSTER_REDIS_PASSWORD", "hunter2")
	program := p.write("env", "#!/bin/sh\nenv > env.txt; echo \"$@\" >> env.txt; pwd >> env.txt; echo '"+list+"'\n")
	read(t, p.sources(program), now())
	text, err := os.ReadFile(p.path("env.txt"))
	if err != nil || strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "HOME") ||
		!strings.Contains(string(text), "--list\n"+p.dir) {
		t.Errorf("%s %v", text, err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	hangs := p.sources(p.write("hangs", "#!/bin/sh\nsleep 1000 & sleep 1000\n"))
	begun := time.Now()
	if _, err := hangs.Read(ctx, now()); err == nil || time.Since(begun) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
}

// changed returns the result of Changed, and reads.
func changed(t *testing.T, s *sources.Sources, at time.Time) bool {
	t.Helper()
	is := s.Changed(at)
	_, _ = s.Read(t.Context(), at)
	return is
}

func TestChanged(t *testing.T) {
	t.Parallel()
	p := place{t, t.TempDir()}
	file := p.write("fleet.yaml", own("a"))
	p.write("inv/hosts", "w1")
	p.write("inv/skipped.txt", "")
	s := p.sources(file, p.path("inv"))
	at := now()
	if !s.Changed(at) || !changed(t, s, at) {
		t.Error("it was never read")
	}
	for _, step := range []struct {
		what   string
		change func()
	}{
		{"a file with the same size", func() { p.write("fleet.yaml", own("b")) }},
		{"a new file", func() { p.write("inv/more.yml", "all: {hosts: {w2: }}") }},
		{"a folder of variables", func() { p.write("inv/group_vars/all.yml", "ansible_user: x") }},
		{"the variables", func() { p.write("inv/group_vars/all.yml", "ansible_user: y") }},
		{"known hosts that were not there", func() { p.write("known_hosts", "w1 "+keyA) }},
		{"known hosts", func() { p.write("known_hosts", "w1 "+keyB) }},
		{"the end of a file", func() { os.Remove(p.path("inv/more.yml")) }},
		{"a file with a mistake", func() { p.write("fleet.yaml", "hosts: {") }},
		{"a file that went", func() { os.Remove(file) }},
		{"a file that came back", func() { p.write("fleet.yaml", own("c")) }},
	} {
		if changed(t, s, at) {
			t.Errorf("before %s: changed", step.what)
		}
		step.change()
		if !changed(t, s, at) {
			t.Errorf("%s: not changed", step.what)
		}
	}
	if p.write("fleet.yaml", own("c")); names(read(t, s, at)) != "c,w1" {
		t.Error(names(read(t, s, at)))
	}
}

// A file that changed a moment ago may change again without a sign: it is looked at
// once more.
func TestAFileThatHasJustChangedIsLookedAtTwice(t *testing.T) {
	t.Parallel()
	p := place{t, t.TempDir()}
	s := p.sources(p.write("fleet.yaml", own("a")))
	at := time.Now()
	read(t, s, at)
	if s.Changed(at) || !s.Changed(at.Add(2*time.Second)) {
		t.Error("want: not at once, but soon")
	}
	read(t, s, at.Add(2*time.Second))
	if s.Changed(at.Add(10 * time.Second)) {
		t.Error("it changes for ever")
	}
}

// Programs are asked from time to time, and not when a file changes; what they said
// is kept as one inventory as long as they say the same.
func TestProgramsAreAskedInTurn(t *testing.T) {
	t.Parallel()
	p := place{t, t.TempDir()}
	file := p.write("fleet.yaml", own("a"))
	s := p.sources(file, p.write("cmdb", "#!/bin/sh\necho x >> runs; echo '"+list+"'\n"))
	runs := func() int {
		text, _ := os.ReadFile(p.path("runs"))
		return strings.Count(string(text), "x")
	}
	at := now()
	first := read(t, s, at)
	p.write("fleet.yaml", own("b"))
	if second := read(t, s, at.Add(time.Second)); runs() != 1 || names(second) != "b,p[1-2]" {
		t.Error(runs(), names(second))
	}
	if s.Changed(at.Add(29*time.Second)) || !s.Changed(at.Add(30*time.Second)) {
		t.Error("want: changed after 30 s")
	}
	second := read(t, s, at.Add(30*time.Second))
	if third := read(t, s, at.Add(61*time.Second)); runs() != 3 || third != second || first == second {
		t.Errorf("%d runs, the same inventory: %v", runs(), third == second)
	}
	p.write("cmdb", "#!/bin/sh\nexit 1\n")
	if _, err := s.Read(t.Context(), at.Add(95*time.Second)); err == nil {
		t.Error("no error")
	}
	if _, err := s.Read(t.Context(), at.Add(96*time.Second)); err == nil {
		t.Error("it forgot the error")
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	err := sources.Config{List: []string{"http://cmdb.example.com/"}, Every: 1}.Validate()
	if err == nil || !slices.Equal(strings.Split(err.Error(), "\n"), []string{
		"inventory_every = 1ns: want 1s or more",
		"inventory http://cmdb.example.com/: an inventory says which hosts are trusted, so it comes over https only",
	}) {
		t.Error(err)
	}
}

// A name in an inventory may lead to any kind of file.
func TestWhatIsNoRegularFileIsNeverRead(t *testing.T) {
	t.Parallel()
	p := place{t, t.TempDir()}
	pipe := p.path("pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	secret := p.write("secret", "root:$6$abcdef$hash:19000:0:99999:7:::\n")
	host := func(known string) string {
		return p.write("fleet.yaml", "defaults: {user: root, known_hosts: "+known+
			"}\nhosts: [{name: fw1, address: 192.0.2.1}]\n")
	}
	for _, c := range []struct{ name, inventory, known, want string }{
		{"known_hosts on a pipe", "", pipe, "known_hosts: open " + pipe + ": it is a named pipe"},
		{"known_hosts on a device", "", "/dev/zero", "known_hosts: open /dev/zero: it is a device"},
		{"known_hosts that is another file", "", secret, secret + ":1: this is no line of a known_hosts file"},
		{"inventory on a pipe", pipe, "", "inventory: open " + pipe + ": it is a named pipe"},
		{"inventory on a device", "/dev/zero", "", "/dev/zero: it is a device"},
	} {
		if c.inventory == "" {
			c.inventory = host(c.known)
		}
		s := sources.New(sources.Config{List: []string{c.inventory}, Every: time.Minute})
		_, err := s.Read(t.Context(), time.Now())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "abcdef") {
			t.Errorf("%s: the error has the content: %v", c.name, err)
		}
	}
}
