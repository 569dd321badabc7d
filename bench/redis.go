package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The databases of the one server: MONITOR tells by them whose a call is.
const (
	dbMuster = iota
	dbPeer
	dbOwn // what this program asks for itself
)

// redisServer is a redis-server of this program, with etc/redis.conf.
type redisServer struct {
	addr    string
	version string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process is gone
	err     error         // how it ended; read after ended is closed
	own     *redis.Client
}

// startRedis starts a server on a free port. Its log and its files go to dir.
// Rewriting of the append-only file is off, because it would hit one contender
// and not the others.
func startRedis(dir string) (*redisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is missing: run ../tools/install.sh redis")
	}
	// The port is free when it is chosen, but somebody may be faster.
	for range 5 {
		var s *redisServer
		if s, err = startRedisAt(path, dir); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("redis-server: %w", err)
}

func startRedisAt(path, dir string) (*redisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	log := filepath.Join(dir, "redis.log")
	s := &redisServer{addr: net.JoinHostPort("127.0.0.1", port), ended: make(chan struct{})}
	s.cmd = exec.Command(path, filepath.Join("..", "etc", "redis.conf"), "--port", port,
		"--dir", dir, "--logfile", log, "--auto-aof-rewrite-percentage", "0")
	s.cmd.SysProcAttr = apart()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	s.own = redis.NewClient(&redis.Options{Addr: s.addr, DB: dbOwn, MaxRetries: -1})
	if err := s.await(); err != nil {
		text, _ := os.ReadFile(log)
		return nil, errors.Join(err, s.stop(), errors.New(lastLines(text, 5)))
	}
	return s, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// await waits until the server answers.
func (s *redisServer) await() error {
	const patience = 20 * time.Second
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		if info, err := s.info(context.Background(), "server"); err == nil {
			s.version = info["redis_version"]
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("ended at start: %w", s.err)
		default:
		}
	}
	return fmt.Errorf("no answer within %s", patience)
}

// stop ends the server; its files are worth nothing.
func (s *redisServer) stop() error {
	err := s.own.Close()
	if killed := s.cmd.Process.Kill(); killed != nil && !errors.Is(killed, os.ErrProcessDone) {
		return errors.Join(err, killed)
	}
	<-s.ended
	return err
}

func (s *redisServer) url() string { return fmt.Sprintf("redis://%s/%d", s.addr, dbMuster) }

// empty makes the server as good as new.
func (s *redisServer) empty(ctx context.Context) error {
	return errors.Join(s.own.FlushAll(ctx).Err(), s.own.ScriptFlush(ctx).Err(), s.forget(ctx))
}

// forget sets the counts of commands to zero.
func (s *redisServer) forget(ctx context.Context) error { return s.own.ConfigResetStat(ctx).Err() }

// usage is how often a command was called since forget, and how long that took,
// whether by a client or by a script.
type usage struct {
	calls int
	usec  float64
}

// usages tells of every command.
func (s *redisServer) usages(ctx context.Context) (map[string]usage, error) {
	info, err := s.info(ctx, "commandstats")
	if err != nil {
		return nil, err
	}
	out := map[string]usage{}
	for key, value := range info {
		name, ok := strings.CutPrefix(key, "cmdstat_")
		if !ok {
			continue
		}
		var u usage
		for pair := range strings.SplitSeq(value, ",") {
			field, number, _ := strings.Cut(pair, "=")
			n, err := strconv.ParseFloat(number, 64)
			if err != nil {
				return nil, fmt.Errorf("INFO commandstats: %s = %q", key, value)
			}
			switch field {
			case "calls":
				u.calls = int(n)
			case "usec":
				u.usec = n
			}
		}
		out[name] = u
	}
	return out, nil
}

// inScripts is the time that scripts took since forget, with all they called.
func (s *redisServer) inScripts(ctx context.Context) (time.Duration, error) {
	all, err := s.usages(ctx)
	usec := all["evalsha"].usec + all["eval"].usec + all["fcall"].usec
	return time.Duration(usec * float64(time.Microsecond)), err
}

// memory is how many bytes the server uses.
func (s *redisServer) memory(ctx context.Context) (float64, error) {
	info, err := s.info(ctx, "memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(info["used_memory"], 64)
}

func (s *redisServer) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.own.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			out[key] = value
		}
	}
	return out, nil
}

// lastLines is the end of a log, for an error.
func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}
