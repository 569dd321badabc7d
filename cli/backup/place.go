package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/cli"
	"muster/cli/reach"
	"muster/history"
	"muster/internal/backupfile"
	"muster/internal/serverkey"
	"muster/internal/settings"
	"muster/jobs/queue"
	"muster/jobs/queue/wipe"
)

// Audit makes the entry of a backup or a restore durable in the audit log. The function that it
// returns writes the outcome.
type Audit func(ctx context.Context, s settings.Settings, e Entry) (end func(result error) error,
	err error)

// Entry is an entry of the audit log.
type Entry struct{ Verb, Installation, Reason string }

// place is the house of a configuration.
type place struct {
	keys    serverkey.Keys
	redis   *queue.Conn
	store   *history.Store
	history bool // the store has more than the audit log
	watch   time.Duration
	audit   func(ctx context.Context, verb, reason string) (func(error) error, error)
}

// callTimeout bounds one call of Redis: that which reads a large zone takes longer than others.
const callTimeout = time.Minute

// watchFor is longer than the time between two beats of a node (5 s), and than the lease of a duty.
const watchFor = 6 * time.Second

// placeOf returns the house of a configuration, and a function that closes it.
func placeOf(conf *reach.FileFlags, audit Audit) (p place, done func(), err error) {
	s, err := conf.Settings()
	if err != nil {
		return p, nil, cli.Exit(cli.ExitUsage, err)
	}
	p.keys, err = settings.ServerKeys(s.Server.Key)()
	if err == nil && p.keys.None() {
		err = errors.New("there is no key of servers, which must prove a backup: server.key names the " +
			"key that muster init has made")
	}
	if err != nil {
		return p, nil, cli.Exit(cli.ExitUsage, err)
	}
	cfg := s.Queue()
	cfg.Timeout = max(cfg.Timeout, callTimeout)
	if p.redis, err = queue.OpenLazy(cfg); err != nil {
		return p, nil, cli.Exit(cli.ExitUsage, err)
	}
	if p.store, err = history.Open(s.LedgerConfig()); err != nil {
		return p, nil, cli.Exit(cli.ExitUsage, errors.Join(err, p.redis.Close()))
	}
	p.watch = watchFor
	p.history = s.HistoryConfig().URL != history.None
	p.audit = func(ctx context.Context, verb, reason string) (func(error) error, error) {
		return audit(ctx, s, Entry{verb, p.keys.Installation(), reason})
	}
	return p, func() {
		// Both were used, and errors of that were told.
		_, _ = p.redis.Close(), p.store.Close()
	}, nil
}

// foreign returns an error if Redis is that of another installation.
func (p place) foreign(ctx context.Context) error {
	owner, err := wipe.New(p.redis).Owner(ctx)
	if err == nil && owner != "" && owner != p.keys.Installation() {
		err = fmt.Errorf("the timetable in %s is that of the installation %q, and the key of servers "+
			"here is that of %q: is it the right Redis, and the right key?", p.redis.Config().Where(), owner,
			p.keys.Installation())
	}
	return err
}

// vouch makes the MAC of a backup, and check checks it.
func (p place) vouch(sum string) (string, error) {
	return p.keys.MAC(serverkey.Backups, sum), nil
}

func (p place) check() backupfile.Check {
	return func(sum, mac string) error { return p.keys.Check(serverkey.Backups, mac, sum) }
}
