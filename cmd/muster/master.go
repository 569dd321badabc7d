package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"muster/cli"
	"muster/internal/files"
	"muster/internal/proc"
	"muster/internal/settings"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/jobs/queue/nodes"
	"muster/jobs/queue/work"
	"muster/master"
	"muster/master/steward"
	"muster/trust"
	"muster/worker/plays"
)

func newMaster() *cobra.Command {
	c := &cobra.Command{
		Use:     "master",
		GroupID: "roles",
		Short:   "Work on the queue with child processes; one master a node",
		Long: `master polls the queue, starts a child process for each job that is due, up to
master.children, and reports the jobs that a dead child leaves behind.

Signals: TERM or INT drains (takes nothing new, waits for the jobs in hand up to
master.drain), a second one stops at once; HUP reads the configuration again; USR2
replaces the master by the binary that now lies at the same path, while the children
continue.`,
		Example: `  muster master --config /etc/muster/muster.yaml
  muster master --redis redis://10.0.0.1:6379/0 --children 32 --slots 4`,
		Args: cobra.NoArgs,
	}
	f := addRoleFlags(c, keys.RoleNode)
	f.works = true
	addMasterFlags(f)
	check := c.Flags().Bool("check", false, "say whether this binary could take over, and end")
	c.Flags().Lookup("check").Hidden = true
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *check {
			return checkMaster(c.OutOrStdout(), f)
		}
		return runMaster(c.Context(), f)
	}
	return c
}

func addMasterFlags(f *roleFlags) {
	f.number("children", "master.children", "worker processes at most")
	f.number("slots", "master.slots", "jobs that one of them works on at a time")
	f.text("node", "node.name", "`name` of this node")
	f.text("node-dir", "node.dir", "`folder` for the locks of this node")
}

func runMaster(ctx context.Context, f *roleFlags) error {
	b, err := ownBinary(keys.RoleNode)
	if err != nil {
		return err
	}
	r, err := b.open(ctx, f)
	if err != nil {
		return err
	}
	defer r.close()
	log := newLogger(r.Log, "master").With("node", r.Node.Name)
	r.warnOfExcess(ctx, log)
	b.zones = &zoneGuard{r.queue.Rights, r.Redis.Timeout, r.Master.AllZones()}
	b.listen, b.redis, b.vital = r.ears.listen, r.Queue(), vitalOf(r.Settings)
	v := &vigil{unit: thisUnit(), log: log}
	b.pulse = v.alone()
	m, look, err := b.master(ctx, r.Settings, r.queue, log)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	// A reload may ask Redis, and TERM must be handled meanwhile.
	reload := r.newReload(ctx, v, func() { b.reload(m, look, f) })
	asked := false
	r.hear(func(sig os.Signal) {
		switch {
		case sig == syscall.SIGHUP:
			reload.ask()
		case sig == syscall.SIGUSR2 && f.parent:
			log.Warn("a master that ends with its parent cannot be upgraded in place", "signal", "USR2")
		default:
			if sig != syscall.SIGUSR2 {
				v.stopping()
			}
			asked = b.obey(m, sig, asked)
		}
	})
	watch, stop := context.WithCancel(ctx)
	defer stop()
	go watchTrust(watch, r.Keys.Trust.Dir, m, log)
	go look.Run(watch, m.Allow)
	return masterEnd(m.Run(ctx))
}

// open opens the connections of a master. A master that takes over from another binary has working
// children already: it must not end because Redis is away, and its lock proves that it is the only
// one.
func (b binary) open(ctx context.Context, f *roleFlags) (*role, error) {
	if len(b.kept) > 0 {
		return takeOver(ctx, f, b.before)
	}
	r, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.onlyOne(ctx, r.Settings, r.queue); err != nil {
		r.close()
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	return r, nil
}

// binary is the file from which this process was started.
type binary struct {
	as   keys.Role  // of the master, and of its children
	path string     // path to start it again, also after an upgrade
	kept []*os.File // files kept by the binary before this one, at an upgrade

	before *vital // of the binary before this one; nil: none is known

	zones  *zoneGuard // nil: this user has all zones
	listen func()     // handles signals again after a failed upgrade
	redis  queue.Config
	vital  vital
	pulse  func(master.Sign) time.Duration
}

func ownBinary(as keys.Role) (binary, error) {
	path, err := proc.Path(os.Args[0])
	if err != nil {
		return binary{}, err
	}
	kept, err := proc.Kept(os.Getenv(proc.KeptEnv))
	os.Unsetenv(proc.KeptEnv)
	return binary{as: as, path: path, kept: kept, before: before(), listen: func() {}}, err
}

// workerEnv returns the environment of one of so many workers. By itself each worker would use all
// cores, and wake a thread for every packet that comes while another thread works; together the
// workers have twice as many threads as there are cores, so that half of them can use all.
func workerEnv(children int) []string {
	threads := threadsOf(runtime.GOMAXPROCS(0), children)
	return append(proc.ChildEnv(), "GOMAXPROCS="+strconv.Itoa(threads))
}

func threadsOf(cores, children int) int {
	children = max(children, 1) // another check reports the mistake
	return min(cores, (2*cores+children-1)/children)
}

func (b binary) config(s settings.Settings) (master.Config, error) {
	c, err := s.MasterConfig(b.as, b.path, cli.Version)
	c.Env = workerEnv(c.Children)
	c.Identity = identity(s.Node.Dir)
	return c, err
}

// identity distinguishes this machine and folder from others with the same node.name, even from a
// clone of the machine.
func identity(dir string) string {
	boot, err := files.Read("/proc/sys/kernel/random/boot_id", 64)
	if err != nil {
		boot = []byte("?")
	}
	return strings.TrimSpace(string(boot)) + ":" + dir
}

// onlyOne refuses a second master under one node.name: each would report the other's jobs as lost.
// The lock prevents two masters of the same machine and folder.
func (b binary) onlyOne(ctx context.Context, s settings.Settings, q *queue.Conn) error {
	list, err := nodes.New(q).Nodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range list {
		if n.ID == s.Node.Name && n.State != jobs.NodeGone && n.Identity != identity(s.Node.Dir) {
			return fmt.Errorf("node.name %s is taken by a master with pid %d on another machine, or with "+
				"another node.dir: give this one a node.name of its own (after a reboot: wait 15 s)",
				n.ID, n.PID)
		}
	}
	return nil
}

// master returns a master, and the steward that looks after it.
func (b binary) master(ctx context.Context, s settings.Settings, q *queue.Conn,
	log hclog.Logger) (*master.Master, *steward.Steward, error) {
	c, err := b.config(s)
	if err != nil {
		return nil, nil, err
	}
	own := nodes.New(q)
	look := steward.New(steward.Node{Name: c.Node, Dir: c.Dir,
		Trust: settings.TrustRules(s.Keys.Trust.Dir)}, s.StewardConfig(), own, log)
	c.Kept, c.Try, c.Exec, c.Pulse = b.kept, b.try, b.exec, look.Beside(b.pulse)
	sayTrust(s.Keys.Trust.Dir, log)
	m, err := master.New(c, work.NewWork(q), own, log)
	if err != nil {
		return nil, nil, err
	}
	m.Begin(look.First(ctx))
	go tidyPlays(ctx, settings.PlaysDir(c.Dir), log)
	return m, look, nil
}

// tidyEvery is the time between two looks at the private folders of plays.
const tidyEvery = 5 * time.Second

// tidyPlays ends plays whose worker and watcher were killed, and removes their private folders with
// the passwords in them, at the start of a node and while it runs, until ctx is done.
func tidyPlays(ctx context.Context, dir string, log hclog.Logger) {
	was := ""
	for tick := time.Tick(tidyEvery); ; {
		removed, err := plays.RemoveLeft(dir)
		why := fmt.Sprint(err)
		if err != nil && why != was {
			log.Warn("plays whose workers were killed have left something: end or remove it by hand",
				"dir", dir, "error", err)
		}
		was = why
		if removed > 0 {
			log.Info("folders of plays that were killed are removed", "dir", dir, "folders", removed)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// trustEvery is the time between two looks at the folder trust.
const trustEvery = 2 * time.Second

// watchTrust lets the master know whether the node can read whom it trusts, until ctx is done.
func watchTrust(ctx context.Context, dir string, m *master.Master, log hclog.Logger) {
	rules := settings.TrustRules(dir)
	if rules == nil {
		return
	}
	was := ""
	for tick := time.Tick(trustEvery); ; {
		why := ""
		_, err := rules()
		if err != nil {
			why = trust.Unread + ": " + wording.ErrorLine(err)
		}
		if why != was {
			m.Distrust(why)
			if was = why; err != nil {
				log.Error(trust.Unread+", and begins no jobs", "error", err)
			} else {
				log.Info("this node can read again whom it trusts")
			}
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// sayTrust logs by whose word the node acts.
func sayTrust(dir string, log hclog.Logger) {
	rules := settings.TrustRules(dir)
	if rules == nil {
		log.Warn("this node believes Redis: it has no folder trust, so whoever can write there can run " +
			"commands on its hosts; `muster init` makes the folder on a server")
		return
	}
	if r, err := rules(); err == nil {
		log.Info("trust: a policy is in force", "dir", dir, "rules", len(r.Policy.Rules()), "signers",
			r.Signers.Len())
	}
}

// obey passes a signal on to a master. asked says whether the master was asked to drain before: a
// second request means now.
func (b binary) obey(m *master.Master, sig os.Signal, asked bool) bool {
	switch {
	case sig == syscall.SIGUSR2:
		m.Upgrade()
		return asked
	case asked:
		m.Stop()
	default:
		m.Drain()
	}
	return true
}

func (b binary) reload(m *master.Master, look *steward.Steward, f *roleFlags) {
	s, err := f.read()
	if err == nil && !reflect.DeepEqual(s.Queue(), b.redis) {
		err = errors.New("redis.* changes: only a restart can do that")
	}
	if err == nil && b.zones != nil {
		err = b.zones.check(s.Master.AllZones())
	}
	if err != nil {
		m.Refuse(err)
		return
	}
	c, err := b.config(s)
	if err != nil {
		m.Refuse(err)
		return
	}
	m.Reload(c)
	look.Reload(s.StewardConfig())
}

// masterEnd adds the exit code to the error of a master.
func masterEnd(err error) error {
	var locked *proc.LockedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &locked):
		return cli.Exit(cli.ExitUsage, err)
	}
	return cli.Exit(cli.ExitNotAll, err)
}
