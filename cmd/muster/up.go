package main

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/jobs/queue/keys"
	"muster/master"
	"muster/server"
)

func newUp() *cobra.Command {
	c := &cobra.Command{
		Use:     "up",
		GroupID: "roles",
		Short:   "Run a server and a master in one process, for one machine",
		Long: `up runs what one machine needs: a server and a master in one process.

Signals: TERM or INT drains the master and then ends the server, a second one
stops at once; HUP reads configuration, inventory and runbooks again. An upgrade in
place (USR2) is for masters that run on their own: see muster master.`,
		Example: `  muster up --config etc/muster.yaml
  muster up --redis redis://127.0.0.1:6379/0 --inventory fleet.yaml --children 8`,
		Args: cobra.NoArgs,
	}
	f := addRoleFlags(c, keys.RoleServer)
	f.works = true
	addServerFlags(f)
	addMasterFlags(f)
	c.RunE = func(c *cobra.Command, _ []string) error { return runUp(c.Context(), f) }
	return c
}

func runUp(ctx context.Context, f *roleFlags) error {
	b, err := ownBinary(keys.RoleServer)
	if err != nil {
		return err
	}
	r, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	log := newLogger(r.Log, "muster")
	srv, err := buildServer(r.Settings, r.queue, nil, log.Named("server"))
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	v := &vigil{unit: thisUnit(), log: log, secure: r.Settings.Server.TLS.Cert != ""}
	b.redis, b.pulse = r.Queue(), v.beside()
	if err := b.onlyOne(ctx, r.Settings, r.queue); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	m, look, err := b.master(ctx, r.Settings, r.queue, log.Named("master").With("node", r.Node.Name))
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	again := reloading{srv, f, r.Settings, log.Named("server")}
	asked := false
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A reload may take long, and TERM must be heard meanwhile.
	reload := r.newReload(ctx, v, func() {
		if err := again.reload(ctx); err != nil {
			m.Refuse(err)
			return
		}
		b.reload(m, look, f)
	})
	r.hear(func(sig os.Signal) {
		switch sig {
		case syscall.SIGUSR2:
			log.Warn("up cannot be upgraded in place: run server and master on their own")
			return
		case syscall.SIGHUP:
			reload.ask()
			return
		}
		v.stopping()
		asked = b.obey(m, sig, asked)
	})
	go v.server(ctx, srv, true)
	go watchTrust(ctx, r.Keys.Trust.Dir, m, log)
	go look.Run(ctx, m.Allow)
	return runBoth(ctx, srv, m)
}

// runBoth runs both until one of them ends. The master starts last: if the server cannot listen, no
// job was taken yet and nothing must be waited for. The server ends last, so that people can watch
// how the master drains.
func runBoth(ctx context.Context, srv *server.Server, m *master.Master) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var served error
	over := make(chan struct{})
	go func() {
		defer close(over)
		served = srv.Run(ctx)
		select {
		case <-srv.Ready():
			m.Drain() // an `up` without its server is of no use
		default: // the master does not run
		}
	}()
	var mastered error
	select {
	case <-srv.Ready():
		mastered = masterEnd(m.Run(ctx))
	case <-over:
	}
	cancel()
	<-over
	if served != nil {
		served = cli.Exit(cli.ExitUsage, served)
	}
	return errors.Join(mastered, served)
}
