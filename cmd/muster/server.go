package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/books"
	"muster/fleet"
	"muster/history"
	"muster/internal/handover"
	"muster/internal/proc"
	"muster/internal/serverkey"
	"muster/internal/settings"
	"muster/internal/socket"
	"muster/internal/sources"
	"muster/jobs/queue"
	"muster/jobs/queue/inbox"
	"muster/jobs/queue/keys"
	"muster/jobs/queue/versions"
	"muster/scripts"
	"muster/server"
	"muster/server/arrivals"
	"muster/server/gitops"
	"muster/server/stock"
)

func newServer() *cobra.Command {
	c := &cobra.Command{
		Use:     "server",
		GroupID: "roles",
		Short:   "Answer the HTTP API; any number of them",
		Long: `server answers the HTTP API, publishes the inventory and cares for the queue. It holds
no state of its own: any number of servers can stand behind a load balancer.

It listens on a unix socket: /run/muster-server/api.sock, or below $XDG_RUNTIME_DIR for
users other than root and muster. The mode of the socket is 0660: only its user and its
group (--socket-group) may call, and the kernel says who calls. The other commands find
the socket by themselves.

On host:port every caller needs a token. Make the first one over the socket, with muster
token create NAME. Beyond loopback the server needs a certificate, too.

Signals: TERM or INT ends it, HUP reads configuration, inventory and runbooks again.`,
		Example: `  muster server --config /etc/muster/muster.yaml
  muster server --inventory fleet.yaml --socket-group operators
  muster server --listen unix:/run/muster-server/api.sock,127.0.0.1:7070`,
		Args: cobra.NoArgs,
	}
	f := addRoleFlags(c, keys.RoleServer)
	addServerFlags(f)
	c.RunE = func(c *cobra.Command, _ []string) error { return runServer(c.Context(), f) }
	return c
}

func addServerFlags(f *roleFlags) {
	f.text("listen", "server.listen", "`places` between commas: unix:/path, host:port")
	f.text("socket-group", "server.socket_group", "`group` that may use the unix socket")
	f.list("inventory", "inventory",
		"`source` of hosts: file, folder, program, URL; can be given several times")
	f.list("runbooks", "runbooks", "`file` or folder of runbooks; can be given several times")
}

func runServer(ctx context.Context, f *roleFlags) error {
	files, err := proc.Sockets()
	if err != nil {
		return err
	}
	handed, err := handover.New(files)
	if err != nil {
		return err
	}
	r, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	log := newLogger(r.Log, "server")
	srv, err := buildServer(r.Settings, r.queue, handed, log)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	again := reloading{srv, f, r.Settings, log}
	v := &vigil{unit: thisUnit(), log: log, secure: r.Settings.Server.TLS.Cert != ""}
	// A reload may take long, and TERM must be heard meanwhile.
	reload := r.newReload(ctx, v, func() { _ = again.reload(ctx) }) // its error has been logged
	r.hear(func(sig os.Signal) {
		switch sig {
		case syscall.SIGHUP:
			reload.ask()
		case syscall.SIGUSR2:
			log.Warn("a server is upgraded by starting another one", "signal", "USR2")
		default:
			v.stopping()
			cancel()
		}
	})
	go v.server(ctx, srv, false)
	if err := srv.Run(ctx); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	return nil
}

func buildServer(s settings.Settings, q *queue.Conn, handed *handover.Sockets,
	log hclog.Logger) (*server.Server, error) {
	catalog, err := readCatalog(s.Runbooks)
	if err != nil {
		return nil, err
	}
	keys := settings.ServerKeys(s.Server.Key)
	d := server.Deps{Queue: stores(q, keys), Catalog: catalog, Log: log,
		Inventory: inventoryOf(s), SecretKeys: settings.KeysOf(s.Keys.Secrets.Key),
		ServerKeys: keys, Policy: settings.Policy(s.Access(), ownName()),
		Trust: settings.TrustRules(s.Keys.Trust.Dir), Notify: settings.NotifyRules(s.Notify()),
		Triggers: settings.TriggerSet(s.Triggers()), Handed: handed,
		Repositories: gitops.Config{Read: settings.RepositorySet(s.Repositories()),
			Folder: s.RepositoryDir()},
		Events: arrivals.Needs{Sources: settings.EventSources(s.Events()),
			Secrets: settings.EventSecrets, Inbox: inbox.New(q, voucher{keys, serverkey.Events}),
			Versions: versions.New(q)}}
	if d.Inventory == nil {
		log.Warn("no inventory is configured: this server publishes none, and knows only hosts of one " +
			"that another server published; set inventory, or give --inventory FILE")
	}
	if c := s.HistoryConfig(); c.URL != history.None {
		// It is closed by the end of the process, as the connections to it are.
		if d.History, err = history.Open(c); err != nil {
			return nil, err
		}
	}
	if k, err := d.ServerKeys(); err == nil && k.None() {
		log.Warn("there is no key of servers: nobody can make or use a token, and the audit log is not " +
			"signed; `muster init` makes the key, for the next start")
	}
	if d.Audit, err = openAudit(s, d.History, d.ServerKeys, log); err != nil {
		return nil, err
	}
	return server.New(s.ServerConfig(cli.Version), d)
}

// ownName returns the user of this process, as policies name it.
func ownName() string {
	return socket.Own(func(name string) bool { return fleet.CheckName(name) == nil })
}

// inventoryOf returns the inventory in the settings; nil if they name none.
func inventoryOf(s settings.Settings) stock.Source {
	if len(s.Inventory) == 0 {
		return nil
	}
	return sources.New(s.Sources())
}

// reloading holds what a server needs to read its configuration again.
type reloading struct {
	srv   *server.Server
	flags *roleFlags
	was   settings.Settings // at the start
	log   hclog.Logger
}

// reload reads configuration, runbooks and inventory again. A part with a mistake stays as it was;
// the mistake is logged and shown by health. The error means a mistake in the whole configuration:
// then nothing of it is in force.
func (r reloading) reload(ctx context.Context) error {
	s, err := r.flags.read()
	if err == nil && (!reflect.DeepEqual(s.Redis, r.was.Redis) ||
		!reflect.DeepEqual(s.Server, r.was.Server) ||
		!reflect.DeepEqual(s.Past, r.was.Past)) {
		err = errors.New("redis.*, server.*, history.* or audit.* changes: only a restart can do that")
	}
	if err != nil {
		r.srv.Stock().Refuse(err)
		r.log.Error("reload: the old configuration stays", "error", err)
		return err
	}
	catalog, bad := readCatalog(s.Runbooks)
	if bad == nil {
		r.srv.UseCatalog(catalog)
	}
	r.srv.Stock().Refuse(bad)
	if err := errors.Join(bad, r.srv.Stock().Use(ctx, inventoryOf(s))); err != nil {
		r.log.Error("reload: the old one stays", "error", err)
		return nil
	}
	r.log.Info("configuration reloaded", "inventory", s.Inventory, "runbooks", s.Runbooks)
	return nil
}

// readCatalog reads the users' runbooks: files, and each *.yaml of folders.
func readCatalog(paths []string) (*scripts.Catalog, error) {
	var files []string
	var errs []error
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("runbooks: %w", err))
		case info.IsDir():
			found, err := books.InFolder(p)
			errs = append(errs, err)
			files = append(files, slices.DeleteFunc(found, books.IsSuite)...)
		default:
			files = append(files, p)
		}
	}
	slices.Sort(files)
	sources, err := books.ReadRunbooks(slices.Compact(files))
	if err != nil {
		errs = append(errs, fmt.Errorf("runbooks: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return scripts.NewCatalog(sources)
}
