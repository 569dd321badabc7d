package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"muster/cli"
	"muster/internal/fit"
	"muster/internal/loglines"
	"muster/internal/proc"
	"muster/internal/settings"
	"muster/jobs/queue"
	"muster/jobs/queue/care"
	"muster/jobs/queue/keys"
)

// roleFlags are the flags of the roles that read the configuration.
type roleFlags struct {
	works  bool // the role starts children
	config string
	unsafe bool
	plain  bool
	parent bool      // ends with the process that started it
	as     keys.Role // its permissions in Redis
	cmd    *cobra.Command
	keys   map[string]string // flag to key, for flags that only set a key
}

func addRoleFlags(c *cobra.Command, as keys.Role) *roleFlags {
	f := &roleFlags{as: as, cmd: c, keys: map[string]string{}}
	c.Flags().StringVar(&f.config, "config", os.Getenv("MUSTER_CONFIG"),
		"configuration `file` (default "+settings.DefaultConfig+" if it is there)")
	c.Flags().BoolVar(&f.unsafe, "unsafe-redis", false,
		"accept a Redis that may forget or evict jobs")
	c.Flags().BoolVar(&f.plain, "plain-redis", false,
		"send the password of Redis unencrypted to another machine")
	f.text("redis", "redis.url", "`URL` of the Redis that keeps the queue")
	f.number("durable", "redis.durable", "`replicas` that must have each submit and take")
	c.Flags().BoolVar(&f.parent, "with-parent", false, "end with the process that started this one")
	c.Flags().Lookup("with-parent").Hidden = true
	return f
}

// text adds a flag that sets a key.
func (f *roleFlags) text(flag, key, usage string) {
	f.cmd.Flags().String(flag, "", usage+" ("+key+")")
	f.keys[flag] = key
}

// number adds a flag that sets a key to a whole number.
func (f *roleFlags) number(flag, key, usage string) {
	f.cmd.Flags().Int(flag, 0, usage+" ("+key+")")
	f.keys[flag] = key
}

// list adds a flag that sets a key to a list.
func (f *roleFlags) list(flag, key, usage string) {
	f.cmd.Flags().StringArray(flag, nil, usage+" ("+key+")")
	f.keys[flag] = key
}

// read reads the settings. It is called again at HUP.
func (f *roleFlags) read() (settings.Settings, error) {
	src := settings.Source{File: f.config, Env: os.Environ(), Flags: map[string]any{}}
	if src.File == "" {
		if _, err := os.Stat(settings.DefaultConfig); err == nil {
			src.File = settings.DefaultConfig
		}
	}
	if f.unsafe {
		src.Flags["redis.unsafe"] = true
	}
	if f.plain {
		src.Flags["redis.plain"] = true
	}
	if u, err := url.Parse(f.cmd.Flags().Lookup("redis").Value.String()); err == nil && u.User != nil {
		return settings.Settings{}, cli.Exit(cli.ExitUsage, errors.New(
			"--redis has a user or password, which "+
				"everybody on this machine could read: put redis.url into the configuration file"))
	}
	for flag, key := range f.keys {
		if f.cmd.Flags().Changed(flag) {
			src.Flags[key] = f.value(flag)
		}
	}
	s, err := settings.Read(src)
	if err == nil && f.as == keys.RoleServer {
		err = s.CheckServer()
	}
	if err == nil && f.works {
		err = s.CheckNode()
	}
	if err != nil {
		return s, cli.Exit(cli.ExitUsage, err)
	}
	return s, nil
}

// value returns the value of a flag; cobra has checked its form.
func (f *roleFlags) value(flag string) any {
	flags := f.cmd.Flags()
	switch flags.Lookup(flag).Value.Type() {
	case "int":
		n, _ := flags.GetInt(flag)
		return n
	case "stringArray":
		list, _ := flags.GetStringArray(flag)
		return list
	}
	return flags.Lookup(flag).Value.String()
}

// role holds the common parts of every role: its settings, the queue, and its signals.
type role struct {
	settings.Settings
	queue   *queue.Conn
	ears    ears
	hearing sync.WaitGroup
}

// open opens a role. Redis must be reachable, and safe for a queue.
func (f *roleFlags) open(ctx context.Context) (*role, error) {
	r, err := f.openBy(func(c queue.Config) (*queue.Conn, error) {
		q, err := queue.Open(ctx, c)
		if err != nil {
			return nil, err
		}
		if err := care.NewForms(q).Check(ctx, c.Zones); err != nil {
			return nil, errors.Join(err, q.Close())
		}
		return q, nil
	})
	if err != nil {
		return nil, err
	}
	if err := fit.Alone(ctx, r.Settings, r.queue, f.as); err != nil {
		r.close()
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	return r, nil
}

// openLazy opens a role that waits for Redis when it needs it.
func (f *roleFlags) openLazy() (*role, error) { return f.openBy(queue.OpenLazy) }

func (f *roleFlags) openBy(by func(queue.Config) (*queue.Conn, error)) (*role, error) {
	// Until the role handles these signals, they must not end the process, which is their default.
	signal.Ignore(syscall.SIGHUP, syscall.SIGUSR2)
	s, err := f.read()
	if err != nil {
		return nil, err
	}
	cfg := s.Queue()
	cfg.Role, cfg.Zones = f.as, s.Master.AllZones()
	q, err := by(cfg)
	if err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	e, err := f.signals()
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return &role{Settings: s, queue: q, ears: e}, nil
}

// hear calls do with every signal until the role is closed.
func (r *role) hear(do func(os.Signal)) {
	r.hearing.Go(func() {
		for {
			select {
			case sig := <-r.ears.heard:
				do(sig)
			case <-r.ears.closed:
				return
			}
		}
	})
}

// warnOfExcess logs calls that the user of a node may make at Redis and should not: an attacker on
// the node could make them, too. It is only a warning, because the node works with it.
func (r *role) warnOfExcess(ctx context.Context, log hclog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, r.Redis.Timeout)
	defer cancel()
	may, err := r.queue.Rights.Excess(ctx)
	switch {
	case err != nil: // Redis is away; the calls that need it report that
		log.Debug("permissions", "error", err)
	case len(may) > 0:
		log.Warn("the user of this node may do more at Redis than a node needs: give it the rules that "+
			"`muster acl` prints", "may", strings.Join(may, "; "))
	}
}

func (r *role) close() {
	r.ears.close()
	r.hearing.Wait()
	r.queue.Close()
}

// newLogger logs to standard error.
func newLogger(l settings.Log, name string) hclog.Logger {
	log := hclog.New(&hclog.LoggerOptions{
		Name:       name,
		Level:      hclog.LevelFromString(l.Level),
		Output:     os.Stderr,
		JSONFormat: l.Format == "json",
		TimeFormat: "2006-01-02T15:04:05.000Z07:00",
	})
	if l.Format == "json" && l.Node != "" {
		log = log.With("node", l.Node)
	}
	if l.Traces {
		log = loglines.WithTraces(log)
	}
	return log
}

// ears receive the signals of a role.
type ears struct {
	heard  chan os.Signal
	closed chan struct{}
}

func (e ears) listen() {
	signal.Notify(e.heard, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR2)
}

func (e ears) close() {
	signal.Stop(e.heard)
	close(e.closed)
}

// signals listens for signals. With a parent, its end is a TERM.
func (f *roleFlags) signals() (ears, error) {
	e := ears{make(chan os.Signal, 8), make(chan struct{})}
	if f.parent {
		parent, err := proc.Inherited()
		if err != nil {
			return e, cli.Exit(cli.ExitUsage, err)
		}
		go func() {
			var nothing any
			for parent.Receive(&nothing) == nil {
			}
			select {
			case e.heard <- syscall.SIGTERM:
			case <-e.closed:
			}
		}()
	}
	e.listen()
	return e, nil
}
