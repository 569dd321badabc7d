package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/testkit/porttest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
	"muster/testkit/sshtest"
)

// This file plants a secret of each kind that muster knows, lets a real house work and fail with
// them, and looks for them wherever a person or a program could read (issue 16, show 6).

// openWord is no secret: it is the name of a zone, a host, a node, and the value of an argument. The
// sweep must find it in every place, or it has not looked there.
const openWord = "open1932word"

const canaryRunbook = `
name: canary
arguments:
  first: {type: secret, max_length: 100}
  second: {type: secret}
  open: {type: string}
  dir: {type: string}
  print: {type: bool, default: false}
timeout: 1m
steps:
  - name: use
    run: |
      pw={{first}}
      if {{print}}; then printf 'it is %s.\nit is %s.\n' "$pw" {{second}}; fi
      export SAID={{open}}; sh -c 'read -r line < "$0/gate"' {{dir}} {{open}}
    save: {it: {match: '(.*)'}}
  - name: ask
    gate: {question: 'is {{saved.it}} right?', timeout: 10m}
  - name: end
    run: printf %s {{second}} > /dev/null; echo {{saved.it}} {{open}}; exit 3
`

// aviary is a house with canaries.
type aviary struct {
	*house
	host   sshtest.SSHD
	its    []string // folders of the host
	sql    history.Config
	tls    string // URL of the server for those who come with a token
	certs  redistest.Certs
	hook   *hook
	fifo   string // folder that a step may write
	roles  []*process
	birds  []canary
	said   map[string]string // what commands printed
	events *watched          // what muster events printed
	begins time.Time
}

// hook is the place that gets the audit log over HTTPS.
type hook struct {
	*httptest.Server
	mu  sync.Mutex
	got bytes.Buffer
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		_ = r.Header.Write(&h.got) // a buffer takes all
		_, _ = io.Copy(&h.got, r.Body)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) text() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return bytes.Clone(h.got.Bytes())
}

// plant makes a text that occurs nowhere else, with characters that are escaped in many ways.
func (a *aviary) plant(kind string) string {
	var raw [12]byte
	rand.Read(raw[:]) // never fails
	text := fmt.Sprintf(`Kn4ry "%x" <b>&'ü+%%/~\of %s`, raw, kind)
	a.birds = append(a.birds, canary{kind: kind, text: text})
	return text
}

// plantFile plants a text that belongs into a file, and writes it.
func (a *aviary) plantFile(kind, name string) string {
	text := a.plant(kind)
	a.birds[len(a.birds)-1].home = a.file(name)
	a.write(name, text+"\n")
	return a.file(name)
}

// plantKeys plants all keys of a file: as they are written, and their bytes.
func (a *aviary) plantKeys(kind, path string) {
	a.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		a.t.Fatal(err)
	}
	n := len(a.birds)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(strings.TrimSpace(line), "=")
		raw, err := base64.RawURLEncoding.DecodeString(line)
		if err == nil && len(raw) == 32 {
			a.birds = append(a.birds, canary{kind, line, path}, canary{kind + " (bytes)", string(raw), path})
		}
	}
	if len(a.birds) == n {
		a.t.Fatalf("%s has no key: %q", path, data)
	}
}

// plantPEM plants a private key in PEM: its lines, and its bytes from the middle on.
func (a *aviary) plantPEM(kind, path string) {
	a.t.Helper()
	data, err := os.ReadFile(path)
	block, _ := pem.Decode(data)
	if err != nil || block == nil {
		a.t.Fatalf("%s: %v, %q", path, err, data)
	}
	// The second half has the secret; the first one names algorithms, as every such key does.
	secret := block.Bytes[len(block.Bytes)/2:]
	if block.Type == "OPENSSH PRIVATE KEY" {
		secret = sshSeed(a.t, path, block.Bytes)
	}
	a.birds = append(a.birds, canary{kind, string(secret), path})
}

// sshSeed returns the 32 bytes of an Ed25519 key that are secret: they stand before the public ones.
func sshSeed(t testing.TB, path string, raw []byte) []byte {
	t.Helper()
	text, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	public, err := base64.StdEncoding.DecodeString(strings.Fields(string(text))[1])
	at := bytes.LastIndex(raw, public[max(0, len(public)-32):])
	if err != nil || at < 32 {
		t.Fatalf("%s: %v, the public key is at %d", path, err, at)
	}
	return raw[at-32 : at]
}

func newAviary(t *testing.T, kind string) *aviary {
	t.Helper()
	s := sshtest.StartSudo(t, "ALL", sshtest.Options{})
	its, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(s.Key)), "*"))
	if err != nil {
		t.Fatal(err)
	}
	a := &aviary{house: newCellar(t, fmt.Sprintf("defaults: {become: sudo, zone: %s}\nhosts:\n"+
		"  - {name: %s, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
		openWord, openWord, s.Address, s.Port, s.User, s.Key, s.HostKey), openWord),
		host: s, its: its, fifo: t.TempDir(), said: map[string]string{}, events: newWatched(),
		begins: time.Now(), hook: newHook(t),
		certs: redistest.MakeCerts(t, time.Now().Add(time.Hour))}
	if err := os.Mkdir(a.file("tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	a.env = []string{"TMPDIR=" + a.file("tmp")}
	if err := syscall.Mkfifo(a.fifo+"/gate", 0o600); err != nil {
		t.Fatal(err)
	}
	a.birds = append(a.birds, canary{kind: "password of sudo", text: sshtest.SudoPassword, home: a.file("become")})
	a.write("become", sshtest.SudoPassword+"\n")
	a.makeKeys()
	a.makeDatabase(kind)
	a.write("canary.yaml", canaryRunbook)
	a.settle()
	return a
}

// makeKeys makes the keys of the installation as people do, and plants them.
func (a *aviary) makeKeys() {
	a.t.Helper()
	for _, name := range []string{"server.key", "trust"} {
		if err := os.RemoveAll(a.file(name)); err != nil {
			a.t.Fatal(err)
		}
	}
	a.cli("init", "--file", a.file("server.key"))
	a.cli("secrets", "keygen", a.file("secrets.key"))
	a.plantKeys("key of servers", a.file("server.key"))
	a.plantKeys("key of nodes", a.file("trust/node.key"))
	a.plantKeys("key of secrets", a.file("secrets.key"))
	a.plantPEM("key of TLS", a.certs.Key)
	a.write("id.pub", a.public(a.host.Key))
	if err := os.Rename(a.file("id.pub"), a.host.Key+".pub"); err != nil {
		a.t.Fatal(err)
	}
	a.plantPEM("private key of SSH", a.host.Key)
	out, err := exec.Command("ssh-keygen", "-q", "-p", "-P", "", "-N", a.plant("passphrase"), "-f", a.host.Key).
		CombinedOutput()
	if err != nil {
		a.t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	a.birds[len(a.birds)-1].home = a.file("passphrase")
	a.write("passphrase", a.birds[len(a.birds)-1].text+"\n")
}

func (a *aviary) public(key string) string {
	a.t.Helper()
	out, err := exec.Command("ssh-keygen", "-y", "-P", "", "-f", key).Output()
	if err != nil {
		a.t.Fatal(err)
	}
	return string(out)
}

// makeDatabase makes the database of history; that of PostgreSQL wants a password.
func (a *aviary) makeDatabase(kind string) {
	a.t.Helper()
	file := a.plantFile("password of SQL", "sqlpw")
	if kind == "sqlite" {
		a.sql = history.DefaultConfig()
		a.sql.URL = "sqlite://" + a.file("history.db")
		return
	}
	p := sqltest.StartPostgres(a.t)
	a.sql = p.Config(a.t)
	p.WantPassword(a.t, a.birds[len(a.birds)-1].text)
	a.sql.PasswordFile = file
}

// settle writes the configuration of the server and that of the node.
func (a *aviary) settle() {
	a.t.Helper()
	a.tls = "https://" + porttest.Addr(a.t)
	a.write("hook.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: a.hook.Certificate().Raw})))
	common := map[string]any{"runbooks": []string{a.file("canary.yaml")}, "log": map[string]any{"level": "trace"},
		"secrets": map[string]any{"key": a.file("secrets.key")},
		"ssh":     map[string]any{"passphrase_file": a.file("passphrase"), "record_dir": "/proc/none"},
		"history": map[string]any{"url": a.sql.URL, "password_file": a.sql.PasswordFile},
		"master":  map[string]any{"zones": []string{"default", openWord}},
		"node":    map[string]any{"name": openWord},
		"audit": map[string]any{"dir": a.file("audit"), "sinks": []string{"file:" + a.file("sink.log") + "#entries",
			a.hook.URL + "#entries"}, "webhook_key": a.plantFile("key of the webhook", "hook.key"),
			"webhook_ca": a.file("hook.pem")},
		"server": map[string]any{"listen": []string{listenOn(a.house.url), strings.TrimPrefix(a.tls, "https://")},
			"tls": map[string]any{"cert": a.certs.Cert, "key": a.certs.Key}}}
	for role, user := range map[string]string{"server": "muster-server", "master": "muster-node-all"} {
		file := a.plantFile("password of Redis for the "+role, role+".pw")
		a.redis.Do(a.t, "ACL", "SETUSER", user, "resetpass", ">"+a.birds[len(a.birds)-1].text)
		common["redis"] = map[string]any{"username": user, "password_file": file}
		a.configure(common)
		if err := os.Rename(a.file("muster.yaml"), a.file(role+".yaml")); err != nil {
			a.t.Fatal(err)
		}
	}
	a.redis.Do(a.t, "CONFIG", "SET", "rdbcompression", "no") // the sweep shall read the dump
}

// open starts server and master.
func (a *aviary) open() {
	a.t.Helper()
	for role, words := range map[string]string{"server": "server listens", "master": "master started"} {
		p := a.house.start(role, "--config", a.file(role+".yaml"))
		p.await(words)
		a.roles = append(a.roles, p)
	}
	cmd := exec.CommandContext(a.t.Context(), a.bin, "events", "-o", "json") // ends with the test
	cmd.Env = append(os.Environ(), "MUSTER_URL="+a.house.url)
	cmd.Stdout, cmd.Stderr = a.events, a.events
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = cmd.Wait() })
}

// cli runs a command and keeps what it printed, on both streams, for the sweep.
func (a *aviary) cli(args ...string) string { return a.cliAs(nil, args...) }

// cliAs is cli with more in the environment.
func (a *aviary) cliAs(env []string, args ...string) string {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.bin, args...)
	cmd.Env = slices.Concat(os.Environ(), []string{"MUSTER_URL=" + a.house.url}, env)
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	if ctx.Err() != nil {
		a.t.Fatalf("muster %q: %v: %s", args, err, &words)
	}
	a.said[fmt.Sprintf("%d muster %s", len(a.said), strings.Join(args, " "))] = out.String() + words.String()
	return out.String() + words.String()
}

// token makes a token and plants its secret part.
func (a *aviary) token() string {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.bin, "token", "create", openWord, "-o", "json")
	cmd.Env = append(os.Environ(), "MUSTER_URL="+a.house.url)
	out, err := cmd.Output() // it shows the token, this once
	var made api.TokenAnswer
	if err != nil || json.Unmarshal(out, &made) != nil {
		a.t.Fatalf("token create: %v: %s", err, out)
	}
	a.birds = append(a.birds, canary{kind: "token", text: strings.SplitN(made.Token, "_", 3)[2]})
	return made.Token
}

// submit orders the runbook with two secrets, over TLS with a token, and returns the task.
func (a *aviary) submit(token string, more ...string) jobs.TaskID {
	a.t.Helper()
	args := slices.Concat([]string{"run", "canary", "--on", openWord, "--arg", "first=@" + a.file("first"),
		"--arg", "second=@" + a.file("second"), "--arg", "open=" + openWord, "--arg", "dir=" + a.fifo,
		"--become-password", "@" + a.file("become"), "--detach", "-o", "json"}, more)
	var task jobs.TaskInfo
	out := a.cliAs([]string{"MUSTER_URL=" + a.tls, "MUSTER_CA=" + a.certs.CA, "MUSTER_TOKEN=" + token}, args...)
	if err := json.Unmarshal([]byte(out), &task); err != nil {
		a.t.Fatalf("run: %v: %s", err, out)
	}
	return task.Task
}

// goOn lets the job of a task pass its step and its gate. between is called while the step runs.
func (a *aviary) goOn(id jobs.TaskID, between func()) {
	a.t.Helper()
	gate, err := os.OpenFile(a.fifo+"/gate", os.O_WRONLY, 0) // waits for the step
	if err != nil {
		a.t.Fatal(err)
	}
	between()
	if _, err := io.WriteString(gate, "go on\n"); err != nil {
		a.t.Fatal(err)
	}
	gate.Close()
	job := jobs.NewID(id, openWord)
	a.awaitJob(job, jobs.Waiting)
	a.cli("gate", "ls")
	a.cli("gate", "open", string(job), "--reason", openWord)
	if end := a.wait(id); end.Outcomes[jobs.Failed] != 1 {
		a.t.Errorf("task %s: %+v", id, end)
	}
	for late := a.late(); !strings.Contains(a.cli("history", "--task", string(id), "-o", "json"), string(job)); {
		select {
		case <-late:
			a.t.Fatal("history has nothing of it")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func TestNoPlantedSecretIsFoundAnywhere(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := newAviary(t, kind)
			a.open()
			token := a.token()
			a.plantFile("first secret argument", "first")
			a.plantFile("second secret argument", "second")
			id := a.submit(token)
			a.goOn(id, func() { a.sweep("while a step runs", a.processes()) })
			a.failures(token)
			places := a.places(id)
			a.sweep("afterwards", places)
			a.wantOpenWord(places)

			// Output that shows secrets is kept unchanged on the host alone, as the documents say.
			id = a.submit(token, "--arg", "print=true")
			a.goOn(id, func() {})
			a.sweep("after a step has printed them", slices.DeleteFunc(a.places(id), func(p place) bool {
				return p.surface == "files of the host"
			}))
			if out := a.cli("logs", string(jobs.NewID(id, openWord))); !strings.Contains(out, "it is (secret)") {
				t.Errorf("the output of the step is %s", out)
			}
		})
	}
}
