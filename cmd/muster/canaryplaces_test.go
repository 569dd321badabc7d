package main

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/history"
	"muster/jobs"
	"muster/testkit/porttest"
)

// This file has the places that the test of the canaries reads, and the failures that it provokes.

// place is something that people or programs can read.
type place struct {
	surface string
	name    string
	data    []byte
}

// sweep searches places for all canaries.
func (a *aviary) sweep(when string, places []place) {
	a.t.Helper()
	f, bytes := newFinder(a.birds), 0
	for _, p := range places {
		bytes += len(p.data)
		for _, one := range f.find(p.data) {
			if one.of.home == "" || p.name != one.of.home {
				a.t.Errorf("%s: %s (%s) has the %s, %s", when, p.name, p.surface, one.of.kind, one.how)
			}
		}
	}
	a.t.Logf("%s: %d canaries, %d places, %d bytes", when, len(a.birds), len(places), bytes)
}

// processes returns the arguments and the environment of all processes of the machine, and what they
// would leave in a core.
func (a *aviary) processes() []place {
	a.t.Helper()
	var out []place
	for _, what := range []string{"cmdline", "environ"} {
		paths, _ := filepath.Glob("/proc/[0-9]*/" + what)
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil { // else it ended meanwhile
				out = append(out, place{what, path, data})
			}
		}
	}
	a.wantOpenWord(out)
	for _, p := range a.roles {
		for _, pid := range append(children(p.cmd.Process.Pid), p.cmd.Process.Pid) {
			limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
			if err != nil || !coreless.Match(limits) {
				a.t.Errorf("a crash of %s, process %d, writes its memory into a file: %v\n%s", p.name, pid, err, limits)
			}
		}
	}
	return out
}

// coreless is a line of the limits of a process that leaves no core.
var coreless = regexp.MustCompile(`Max core file size +0 +0 `)

// wantOpenWord checks that a word which is no secret is found on each surface: so the sweep looks
// where it says, and what is printed there is found.
func (a *aviary) wantOpenWord(places []place) {
	a.t.Helper()
	found := map[string]bool{}
	for _, p := range places {
		found[p.surface] = found[p.surface] || len(newFinder([]canary{{text: openWord}}).find(p.data)) > 0
	}
	for _, surface := range slices.Sorted(maps.Keys(found)) {
		if !found[surface] {
			a.t.Errorf("%s: the word that is printed there is not found", surface)
		}
	}
}

// places returns all that is kept or shown of what has happened.
func (a *aviary) places(id jobs.TaskID) []place {
	a.t.Helper()
	a.redis.Do(a.t, "EVAL", "redis.log(redis.LOG_WARNING, ARGV[1])", 0, openWord)
	a.redis.Do(a.t, "SAVE")
	a.redis.Do(a.t, "ACL", "SAVE")
	var out []place
	for _, p := range a.roles {
		out = append(out, place{"log of " + p.name, p.name, []byte(p.log.String())})
	}
	out = append(out, place{"log of Redis", "redis", []byte(a.redis.Log())},
		place{"webhook", a.hook.URL, a.hook.text()}, place{"events", "events", []byte(a.events.String())})
	out = append(out, a.shown(id)...)
	out = append(out, a.bundled()...)
	out = append(out, a.rows()...)
	out = append(out, a.values()...)
	for surface, dirs := range map[string][]string{"files of Redis": {a.redis.Dir}, "files of muster": {a.dir},
		"files of the host": a.its} {
		for _, dir := range dirs {
			out = append(out, a.files(surface, dir)...)
		}
	}
	if a.sql.PasswordFile != "" {
		at, err := url.Parse(a.sql.URL)
		if err != nil {
			a.t.Fatal(err)
		}
		out = append(out, a.files("files of PostgreSQL", at.Query().Get("host"))...)
	}
	for name, text := range a.said {
		out = append(out, place{"output of commands", name, []byte(text)})
	}
	return out
}

// files returns the files below a folder which were written since the test began.
func (a *aviary) files(surface, dir string) (out []place) {
	a.t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // what vanishes meanwhile is not kept
		}
		if info, err := d.Info(); err != nil || info.ModTime().Before(a.begins.Add(-time.Minute)) {
			return nil
		}
		if data, err := os.ReadFile(path); err == nil {
			out = append(out, place{surface, path, data})
		}
		return nil
	})
	if err != nil {
		a.t.Error(err)
	}
	return out
}

// shown returns what people and programs are shown.
func (a *aviary) shown(id jobs.TaskID) (out []place) {
	a.t.Helper()
	job := string(jobs.NewID(id, openWord))
	for surface, args := range map[string][]string{
		"task": {"task", string(id), "-o", "json"}, "job": {"job", job, "-o", "json"},
		"logs": {"logs", job, "-o", "json"}, "report": {"report", string(id), "-o", "json"},
		"history":        {"history", "--task", string(id), "-o", "json"},
		"history events": {"history", "events", string(id), "-o", "json"},
		"history export": {"history", "export"}, "audit": {"audit", "ls", "--all", "-o", "json"},
		"audit export": {"audit", "export"}, "tokens": {"token", "ls", "-o", "json"},
		"nodes": {"nodes", "-o", "json"}, "hosts": {"hosts", "show", openWord, "-o", "json"},
		"queue": {"queue", "-o", "json"},
	} {
		out = append(out, place{surface, surface, []byte(a.cli(args...))})
	}
	a.cli("health", "-o", "json")
	a.cli("runbooks", "show", "canary")
	for _, path := range []string{"/metrics", "/v1/tasks"} {
		res, err := a.get(path)
		if err != nil {
			a.t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 {
			a.t.Fatalf("%s: %s, %v", path, res.Status, err)
		}
		out = append(out, place{path, path, text})
	}
	return out
}

// rows returns all cells of all tables; what is compressed also as it was before.
func (a *aviary) rows() []place {
	a.t.Helper()
	list := "SELECT m.name || ' ' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
	if a.sql.PasswordFile != "" {
		list = "SELECT table_name || ' ' || column_name FROM information_schema.columns WHERE table_schema = 'public'"
	}
	store, err := history.Open(a.sql)
	if err != nil {
		a.t.Fatal(err)
	}
	defer store.Close()
	read := func(query string) (out [][]byte) {
		err := history.HandleOf(store).Rows(context.Background(), "canary", query, nil,
			func(scan func(...any) error) error {
				var cell []byte
				err := scan(&cell)
				out = append(out, cell)
				return err
			})
		if err != nil {
			a.t.Fatalf("%s: %v", query, err)
		}
		return out
	}
	var all bytes.Buffer
	for _, at := range read(list) {
		table, column, _ := strings.Cut(string(at), " ")
		for _, cell := range read(fmt.Sprintf(`SELECT "%s" FROM "%s"`, column, table)) {
			text, _ := io.ReadAll(flate.NewReader(bytes.NewReader(cell))) // nothing if it is not compressed
			fmt.Fprintf(&all, "%s\n%s\n", cell, text)
		}
	}
	return []place{{"rows of SQL", a.sql.URL, all.Bytes()}}
}

// values returns what Redis says that it has, with its users and its configuration.
func (a *aviary) values() (out []place) {
	a.t.Helper()
	var all bytes.Buffer
	names, _ := a.redis.Do(a.t, "KEYS", "*").([]any)
	for _, name := range names {
		kind := a.redis.Do(a.t, "TYPE", name)
		read := map[any][]any{"string": {"GET", name}, "hash": {"HGETALL", name},
			"list": {"LRANGE", name, 0, -1}, "set": {"SMEMBERS", name}, "zset": {"ZRANGE", name, 0, -1},
			"stream": {"XRANGE", name, "-", "+"}}[kind]
		if read == nil {
			a.t.Fatalf("%v is a %v", name, kind)
		}
		fmt.Fprintf(&all, "%s: %s\n", name, a.redis.Do(a.t, read...))
	}
	for _, command := range [][]any{{"ACL", "LIST"}, {"CONFIG", "GET", "*"}, {"CLIENT", "LIST"},
		{"SLOWLOG", "GET", 1000}, {"ACL", "LOG"}, {"FUNCTION", "LIST", "WITHCODE"}} {
		fmt.Fprintf(&all, "%s\n", a.redis.Do(a.t, command...))
	}
	a.redis.Do(a.t, "ACL", "LOG", "RESET") // the wrong passwords were refused as they should be
	return []place{{"values of Redis", a.redis.Addr, all.Bytes()}}
}

// failures provokes errors about secrets. The sweep reads their words as it reads the rest.
func (a *aviary) failures(token string) {
	a.t.Helper()
	t := a.t
	a.birds = append(a.birds, canary{kind: "token that is refused", text: "Zx9" + reversed(token)[:24]})
	over := []string{"MUSTER_URL=" + a.tls, "MUSTER_CA=" + a.certs.CA}
	wrong := "mst_" + strings.Repeat("a", 12) + "_" + a.birds[len(a.birds)-1].text
	if out := a.cliAs(append(over, "MUSTER_TOKEN="+wrong), "tasks"); !strings.Contains(out, "token") {
		t.Errorf("with a wrong token: %s", out)
	}
	a.cliAs(append(over, "MUSTER_TOKEN="+a.plant("text in place of a token")), "tasks")
	a.plantFile("secret that is too long", "long")
	a.write("long", a.birds[len(a.birds)-1].text+strings.Repeat(" and more", 20)+"\n")
	if out := a.cli("run", "canary", "--on", openWord, "--arg", "first=@"+a.file("long"), "--arg",
		"second=@"+a.file("second"), "--arg", "open=x", "--arg", "dir="+a.fifo); !strings.Contains(out, "first") {
		t.Errorf("a secret that is too long: %s", out)
	}
	a.cli("run", "exec", openWord, "--arg", "cmd=id", "--become-password", "@"+a.plantFile("wrong password of sudo",
		"wrong"), "--wait")
	a.cli("exec", openWord, "--become-password", a.plant("password in the wrong place"), "--", "id")
	for key, value := range map[string]any{
		"secrets.key":           a.plantFile("broken key of secrets", "broken.secrets"),
		"server.key":            a.plantFile("broken key of servers", "broken.key"),
		"trust.dir":             a.brokenTrust(),
		"redis.password_file":   a.plantFile("wrong password of Redis", "wrong.redis"),
		"redis.password":        a.plant("password of Redis beside a file"),
		"redis.url":             a.urlOf("redis", "port/0", "password in a bad URL of Redis"),
		"history.url":           a.urlOf("postgres", "port/x", "password in a bad URL of SQL"),
		"history.password_file": a.plantFile("wrong password of SQL", "wrong.sql"),
		"history.url ":          a.urlOf("postgres", "1/x", "password of a SQL that is away"),
		"ssh.passphrase_file":   a.plantFile("wrong passphrase", "wrong.passphrase"),
		"server.tls.key":        a.plantFile("broken key of TLS", "broken.pem"),
		"audit.webhook_key":     a.plantFile("broken key of the webhook", "broken.hook"),
	} {
		a.starts(strings.TrimSpace(key), value)
	}
}

// urlOf plants a password in a URL.
func (a *aviary) urlOf(scheme, rest, kind string) string {
	return scheme + "://u:" + url.QueryEscape(a.plant(kind)) + "@127.0.0.1:" + rest
}

func reversed(text string) string {
	b := []byte(text)
	slices.Reverse(b)
	return string(b)
}

// brokenTrust is a folder trust with a damaged key.
func (a *aviary) brokenTrust() string {
	a.t.Helper()
	if err := os.CopyFS(a.file("trust2"), os.DirFS(a.file("trust"))); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Remove(a.file("trust2/node.key")); err != nil {
		a.t.Fatal(err)
	}
	a.plantKeys("copied key of nodes", a.file("trust/node.key"))
	a.plantFile("broken key of nodes", "trust2/node.key")
	return a.file("trust2")
}

// starts starts a server and a master with a mistake in their configuration, and ends each of them
// that can live with it.
func (a *aviary) starts(key string, value any) {
	a.t.Helper()
	for _, role := range []string{"server", "master"} {
		text, err := os.ReadFile(a.file(role + ".yaml"))
		if err != nil {
			a.t.Fatal(err)
		}
		bad := wrongly(a.t, text, key, value)
		a.write("bad.yaml", bad)
		ctx, cancel := context.WithTimeout(a.t.Context(), 30*time.Second)
		cmd := exec.CommandContext(ctx, a.bin, role, "--config", a.file("bad.yaml"))
		cmd.Env = append(os.Environ(), a.env...)
		log := newWatched()
		cmd.Stderr, cmd.Stdout = log, log
		if err := cmd.Start(); err != nil {
			a.t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		for running := true; running; {
			select {
			case <-ended:
				running = false
			case <-log.news:
				if strings.Contains(log.String(), "server listens") || strings.Contains(log.String(), "master started") {
					_ = cmd.Process.Signal(os.Interrupt)
				}
			}
		}
		cancel()
		a.said[fmt.Sprintf("%d %s with a wrong %s", len(a.said), role, key)] = log.String()
		if err := os.Remove(a.file("bad.yaml")); err != nil {
			a.t.Fatal(err)
		}
	}
}

// wrongly returns a configuration with one key changed, and with places of its own.
func wrongly(t testing.TB, text []byte, key string, value any) string {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	at := all
	parts := strings.Split(key, ".")
	for _, part := range parts[:len(parts)-1] {
		at, _ = at[part].(map[string]any)
		if at == nil {
			t.Fatalf("the configuration has no %s", key)
		}
	}
	at[parts[len(parts)-1]] = value
	maps.Copy(all["node"].(map[string]any), map[string]any{"name": "wrong", "dir": filepath.Join(t.TempDir(), "node")})
	all["server"].(map[string]any)["listen"] = []string{listenOn(freeSocket(t)), porttest.Addr(t)}
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
