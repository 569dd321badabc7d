package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"muster/internal/proc"
	"muster/internal/wording"
	"muster/jobs/queue/codec"
)

// A jobStore is the Redis of a demo.
type jobStore struct {
	url   string
	words string // for people
}

// startRedis starts the redis-server of this machine, if it has one that works, or else a Redis
// inside this process, which is much slower with many hosts.
func (s *stage) startRedis(ctx context.Context) (jobStore, error) {
	if s.flags.embedded {
		return s.startInside()
	}
	own, err := s.startServer(ctx)
	if err == nil {
		return own, nil
	}
	r, bad := s.startInside()
	r.words += fmt.Sprintf(" (no redis-server: %s)", wording.ErrorLine(err))
	return r, bad
}

// serverVersion matches the version in the words of redis-server --version.
var serverVersion = regexp.MustCompile(`\bv=(\d+\.\d+\.\d+)`)

// redisConf is the configuration of the demo's redis-server. Its folder is for this user only, so
// its socket needs no password.
const redisConf = `port 0
unixsocket %[1]q
unixsocketperm 600
dir %[2]q
save ""
appendonly yes
auto-aof-rewrite-percentage 0
maxmemory-policy noeviction
`

// serverSoon bounds the time of a redis-server to start.
const serverSoon = 10 * time.Second

// startServer starts a redis-server, which ends with the demo.
func (s *stage) startServer(ctx context.Context) (jobStore, error) {
	path, err := proc.Find("redis-server")
	if err != nil {
		return jobStore{}, errors.New("this machine has none")
	}
	ctx, cancel := context.WithTimeout(ctx, serverSoon)
	defer cancel()
	said, err := proc.Output(ctx, proc.Program{Path: path, Args: []string{"--version"},
		Env: proc.ChildEnv(), Most: 1 << 10})
	if err != nil {
		return jobStore{}, err
	}
	found := serverVersion.FindSubmatch(said)
	if found == nil {
		return jobStore{}, fmt.Errorf("its version is not known: %.100q", said)
	}
	version := string(found[1])
	if err := codec.OldEnough(version); err != nil {
		return jobStore{}, err
	}
	log, err := os.Create(filepath.Join(s.dir, "redis.log"))
	if err != nil {
		return jobStore{}, err
	}
	defer log.Close()
	socket := filepath.Join(s.dir, "redis.sock")
	own, err := proc.StartService(proc.Program{Path: path, Args: []string{"-"}, Dir: s.dir,
		Env: proc.ChildEnv(), In: fmt.Appendf(nil, redisConf, socket, s.dir)}, log)
	if err != nil {
		return jobStore{}, err
	}
	if err := awaitFile(ctx, socket, own.Over()); err != nil {
		own.Kill()
		return jobStore{}, err
	}
	s.undo = append(s.undo, own.Kill)
	return jobStore{url: "unix://" + socket, words: "redis-server " + version}, nil
}

// awaitFile waits for a file that a program makes.
func awaitFile(ctx context.Context, path string, over <-chan struct{}) error {
	for look := time.NewTicker(5 * time.Millisecond); ; {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-over:
			return errors.New("it has ended at once")
		case <-ctx.Done():
			return fmt.Errorf("it did not start within %s", serverSoon)
		}
	}
}

// redisTick is the step by which the clock of the Redis inside moves: its TTLs do not pass by
// themselves.
const redisTick = 250 * time.Millisecond

// startInside starts a Redis inside this process.
func (s *stage) startInside() (jobStore, error) {
	m := miniredis.NewMiniRedis()
	password := rand.Text()
	m.RequireAuth(password)
	if err := m.Start(); err != nil {
		return jobStore{}, fmt.Errorf("embedded redis: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		for tick := time.Tick(redisTick); ; {
			select {
			case <-tick:
				m.FastForward(redisTick)
			case <-ctx.Done():
				return
			}
		}
	})
	s.undo = append(s.undo, func() {
		cancel()
		wait.Wait()
		m.Close()
	})
	return jobStore{url: "redis://:" + password + "@" + m.Addr() + "/0",
		words: "a Redis inside this process"}, nil
}
