// Package sqltest starts the PostgreSQL servers that tests of history need.
package sqltest

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/history"
)

// Postgres is a PostgreSQL server of tests, with a socket in its own folder and no
// port. It runs as another user than root, because it refuses root.
type Postgres struct {
	Dir   string
	bin   string
	owner *syscall.Credential // nil: ours
	cmd   *exec.Cmd
	ended chan struct{}
	bases atomic.Int64
}

// startTimeout bounds the start of a server on a loaded machine.
const startTimeout = time.Minute

// StartPostgres starts a server for one test, and ends it with the test.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	p, err := newPostgres()
	if p != nil {
		t.Cleanup(p.Remove)
	}
	if err != nil {
		t.Fatalf("postgres: %v", err)
	}
	return p
}

var shared struct {
	once sync.Once
	p    *Postgres
	err  error
}

// Shared returns a server for all tests of a process, each with a database of its own. A package
// that uses it must call Done in TestMain.
func Shared(t testing.TB) *Postgres {
	t.Helper()
	shared.once.Do(func() { shared.p, shared.err = newPostgres() })
	if shared.err != nil {
		t.Fatalf("postgres: %v", shared.err)
	}
	return shared.p
}

// Done ends the shared server, if there is one.
func Done() {
	if shared.p != nil {
		shared.p.Remove()
	}
}

func newPostgres() (*Postgres, error) {
	list, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is right
	if len(list) == 0 {
		return nil, errors.New("it is not installed: run `make test`, which installs it")
	}
	dir, err := os.MkdirTemp("/tmp", "muster-postgres")
	if err != nil {
		return nil, err
	}
	p := &Postgres{Dir: dir, bin: filepath.Dir(list[len(list)-1])}
	if os.Getuid() == 0 {
		who, err := user.Lookup("postgres")
		if err != nil {
			return p, err
		}
		uid, _ := strconv.Atoi(who.Uid) // numbers, on Linux
		gid, _ := strconv.Atoi(who.Gid)
		p.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return p, err
		}
	}
	c := p.command("initdb", "-D", filepath.Join(dir, "data"), "-A", "trust", "-U", "muster", "-E", "UTF8",
		"--locale", "C", "--no-sync", "--no-instructions")
	if text, err := c.CombinedOutput(); err != nil {
		return p, fmt.Errorf("initdb: %w: %s", err, text)
	}
	return p, p.Start()
}

func (p *Postgres) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(p.bin, name), args...)
	c.Dir = p.Dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner, Pdeathsig: syscall.SIGQUIT}
	return c
}

// Start starts the server, and waits until it answers.
func (p *Postgres) Start() error {
	p.cmd = p.command("postgres", "-D", filepath.Join(p.Dir, "data"), "-k", p.Dir, "-c",
		"listen_addresses=", "-c", "max_wal_size=4GB", "-c", "shared_buffers=128MB")
	var log bytes.Buffer
	p.cmd.Stdout, p.cmd.Stderr = &log, &log
	p.ended = make(chan struct{})
	begun := make(chan error, 1)
	go func() {
		// The signal at our death is that of the thread which started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		begun <- p.cmd.Start()
		_ = p.cmd.Wait() // it was ended by us, or says why in its log
		close(p.ended)
	}()
	if err := <-begun; err != nil {
		return err
	}
	for from := time.Now(); ; {
		c := p.command("pg_isready", "-q", "-h", p.Dir, "-U", "muster", "-t", "1")
		if c.Run() == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("it ended: %s", log.String())
		default:
		}
		if time.Since(from) > startTimeout {
			return errors.New("it does not come up")
		}
	}
}

// CPU returns the processor time that the server has used, including its running children.
func (p *Postgres) CPU(t testing.TB) time.Duration {
	t.Helper()
	own := strconv.Itoa(p.cmd.Process.Pid)
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var sum time.Duration
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended meanwhile
		}
		// The name of a program may have blanks; behind it come state, parent, …, utime, stime.
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 13 || fields[1] != own && filepath.Base(filepath.Dir(f)) != own {
			continue
		}
		for _, ticks := range fields[11:13] {
			n, _ := strconv.Atoi(ticks)
			sum += time.Duration(n) * 10 * time.Millisecond // of 1/100 s, on Linux always
		}
	}
	return sum
}

// Kill ends the server at once, as a crash does: SIGQUIT makes it drop everything
// in hand and its children with it.
func (p *Postgres) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended by itself
	<-p.ended
}

// Remove ends the server and takes its files away.
func (p *Postgres) Remove() {
	if p.ended != nil {
		p.Kill()
	}
	os.RemoveAll(p.Dir)
}

// Config is that of a fresh database.
func (p *Postgres) Config(t testing.TB) history.Config {
	t.Helper()
	name := fmt.Sprintf("t%d", p.bases.Add(1))
	text, err := p.command("createdb", "-h", p.Dir, "-U", "muster", name).CombinedOutput()
	if err != nil {
		t.Fatalf("createdb: %v: %s", err, text)
	}
	c := history.DefaultConfig()
	u := url.URL{Scheme: "postgres", User: url.User("muster"), Path: "/" + name,
		RawQuery: url.Values{"host": {p.Dir}}.Encode()}
	c.URL = u.String()
	return c
}

// WantPassword makes the server let nobody in any more without this password.
func (p *Postgres) WantPassword(t testing.TB, password string) {
	t.Helper()
	do := func(text string) {
		c := p.command("psql", "-q", "-h", p.Dir, "-U", "muster", "-d", "postgres", "-v", "ON_ERROR_STOP=1")
		c.Stdin = strings.NewReader(text)
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("psql: %v: %s", err, said)
		}
	}
	do(`ALTER USER muster PASSWORD '` + strings.ReplaceAll(password, "'", "''") + `';`)
	rules := filepath.Join(p.Dir, "data", "pg_hba.conf")
	if err := os.WriteFile(rules, []byte("local all all scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	do("SELECT pg_reload_conf();")
}

// SQLite is the configuration of a fresh file.
func SQLite(t testing.TB) history.Config {
	c := history.DefaultConfig()
	c.URL = "sqlite://" + filepath.Join(t.TempDir(), "history.db")
	return c
}
