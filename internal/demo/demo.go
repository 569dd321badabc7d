package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"muster/internal/fakefleet"
	"muster/internal/files"
	"muster/internal/proc"
	"muster/internal/serverkey"
)

// demoFlags are the flags of the demo.
type demoFlags struct {
	hosts, children, slots int
	stay, story, embedded  bool
	format                 string
}

// NewDemo makes the command demo.
func NewDemo() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:     "demo",
		GroupID: "roles",
		Short:   "See it work: a pretended fleet, a big task, and a small one behind it",
		Long: `demo starts all parts of muster on this machine: a redis-server, if there is
one, or else a Redis inside this process, a pretended fleet of SSH hosts on
127.77.0.0/16, and a server, a master and its children as real processes. alice
submits a task for all hosts, and a moment later bob submits one for four hosts. When
jobs are 2 s late (overload.after; the default is 10 s), the queue is reordered, so
that bob does not wait for all jobs of alice. Some hosts are slow, one refuses the
login, one shows a wrong host key, one cuts the connection: the summary shows what
happened.

Then carol puts new firewall rules on some of the hosts, a canary first and then in
waves. One host locks muster out with the new rules, and restores the old ones by
itself.

demo leaves nothing behind.`,
		Example: `  muster demo
  muster demo --hosts 3000 --slots 8
  muster demo --stay             # keep it running, to try commands on it
  muster demo --stay --story=false --hosts 20000
  muster demo -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return playDemo(c, f) },
	}
	c.Flags().IntVar(&f.hosts, "hosts", 300, "pretended hosts")
	c.Flags().IntVar(&f.children, "children", 8, "worker processes at most")
	c.Flags().IntVar(&f.slots, "slots", 4, "jobs that one of them works on at a time")
	c.Flags().BoolVar(&f.stay, "stay", false, "keep it running until Ctrl-C")
	c.Flags().BoolVar(&f.story, "story", true, "play the story; without it, --stay has an idle house")
	c.Flags().BoolVar(&f.embedded, "embedded", false,
		"keep jobs in this process, also if there is a redis-server")
	c.Flags().StringVarP(&f.format, "output", "o", "text", "text or json")
	return c
}

func (f demoFlags) check() error {
	var errs []error
	if f.hosts < 10 || f.hosts > 60000 {
		errs = append(errs, fmt.Errorf("--hosts %d: want 10 to 60000", f.hosts))
	}
	if f.children < 1 || f.children > 100 {
		errs = append(errs, fmt.Errorf("--children %d: want 1 to 100", f.children))
	}
	if f.slots < 1 || f.slots > 64 {
		errs = append(errs, fmt.Errorf("--slots %d: want 1 to 64", f.slots))
	}
	if !f.story && !f.stay {
		errs = append(errs, errors.New("--story=false: nothing is left to do; add --stay"))
	}
	if f.format != "text" && f.format != "json" {
		errs = append(errs, fmt.Errorf("-o %s: want text or json", f.format))
	}
	return errors.Join(errs...)
}

// stage holds everything that a demo has started; it ends all of it in the reverse order.
type stage struct {
	flags demoFlags
	dir   string
	redis jobStore
	fleet *fakefleet.Fleet
	url   string          // of the server
	hurry <-chan struct{} // closed: end everything at once
	undo  []func()
}

func (s *stage) close() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
}

// buildStage starts everything. After hurry is closed, its end takes no time.
func buildStage(ctx context.Context, f demoFlags, hurry <-chan struct{}) (*stage, error) {
	s := &stage{flags: f, hurry: hurry}
	err := s.build(ctx)
	if err != nil {
		err = errors.Join(err, s.logs())
		s.close()
	}
	return s, err
}

func (s *stage) build(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "muster-demo-")
	if err != nil {
		return err
	}
	s.dir = dir
	s.undo = append(s.undo, func() { os.RemoveAll(dir) })

	if s.redis, err = s.startRedis(ctx); err != nil {
		return err
	}
	s.fleet, err = fakefleet.Start(fakefleet.Config{Hosts: s.flags.hosts, Seed: 1,
		Personality: fakefleet.Mix, Latency: 40 * time.Millisecond})
	if err != nil {
		return fmt.Errorf("pretended fleet: %w", err)
	}
	s.undo = append(s.undo, func() { s.fleet.Close() })
	if err := s.fleet.WriteFiles(dir); err != nil {
		return err
	}
	config, err := s.writeConfig()
	if err != nil {
		return err
	}
	for _, role := range []string{"server", "master"} {
		if err := s.startRole(role, config); err != nil {
			return err
		}
	}
	s.url = "unix://" + filepath.Join(dir, "api.sock")
	return awaitServer(ctx, s.url)
}

func (s *stage) writeConfig() (path string, err error) {
	people, err := s.writePeople()
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(map[string]any{
		"redis": map[string]any{"url": s.redis.url, "embedded": true},
		"server": map[string]any{"key": filepath.Join(s.dir, "server.key"), "listen": []string{
			"unix:" + filepath.Join(s.dir, "api.sock"), "127.0.0.1:0"}, // the port is for browsers
			"access": people},
		"master":    map[string]any{"children": s.flags.children, "slots": s.flags.slots, "drain": "10s"},
		"overload":  map[string]any{"after": demoAfter.String()},
		"node":      map[string]any{"name": "demo", "dir": filepath.Join(s.dir, "node")},
		"inventory": []string{filepath.Join(s.dir, fakefleet.InventoryFile)},
		"runbooks": []string{filepath.Join(s.dir, "ruleset.yaml"),
			filepath.Join(s.dir, "upkeep.yaml")},
	})
	if err != nil {
		return "", err
	}
	for name, text := range map[string]string{"ruleset": demoRunbook, "upkeep": demoUpkeep} {
		if err := os.WriteFile(filepath.Join(s.dir, name+".yaml"), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	if err := s.writeKey(); err != nil {
		return "", err
	}
	path = filepath.Join(s.dir, "muster.yaml")
	return path, os.WriteFile(path, text, 0o600)
}

// writeKey writes the key of the server, which sessions of browsers need.
func (s *stage) writeKey() error {
	var key [serverkey.Size]byte
	if _, err := rand.Read(key[:]); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "server.key"), []byte(serverkey.File("demo", key)), 0o400)
}

// startRole starts a role as a process, which ends with this one.
func (s *stage) startRole(role, config string) error {
	path, err := proc.Path(os.Args[0])
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, role+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	child, err := proc.NewParent().Start(proc.Spec{Path: path, Env: proc.ChildEnv(), Stderr: log,
		Args: []string{role, "--config", config, "--with-parent"}})
	if err != nil {
		return err
	}
	s.undo = append(s.undo, func() { s.end(child) })
	return nil
}

const (
	// hurryTime bounds the time of a role to end at once.
	hurryTime = 5 * time.Second
	// hurryAgain is the pause between two signals: two signals in one moment count as one.
	hurryAgain = 100 * time.Millisecond
)

// end ends a role. The second request means now: a master then kills its children, which would
// outlive it if it were killed itself.
func (s *stage) end(role *proc.Child) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		role.Wait()
	}()
	role.Terminate()
	select {
	case <-over:
		return
	case <-s.hurry:
	}
	last, again := time.After(hurryTime), time.Tick(hurryAgain)
	for {
		select {
		case <-over:
			return
		case <-again:
			role.Terminate()
		case <-last:
			role.Kill()
			<-over
			return
		}
	}
}

// logs returns the last lines of the roles' logs, for errors.
func (s *stage) logs() error {
	var errs []error
	for _, role := range []string{"server", "master"} {
		text, err := files.Read(filepath.Join(s.dir, role+".log"), 64<<20)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		for _, line := range lines[max(len(lines)-5, 0):] {
			errs = append(errs, fmt.Errorf("%s says: %s", role, line))
		}
	}
	return errors.Join(errs...)
}
