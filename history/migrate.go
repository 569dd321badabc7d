package history

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"muster/internal/proc"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ErrChanging is wrapped while the tables do not have the form of this version yet. With millions
// of jobs a new index takes minutes, and callers must get an error in that time rather than hang.
var ErrChanging = errors.New("not usable yet")

// patience bounds the time for which a call waits for the tables.
const patience = 2 * time.Second

// changing is one try to change the tables to the form of this version. It continues even if the
// caller that began it gives up, because a change that breaks off would have to begin again.
type changing struct {
	since time.Time
	what  atomic.Pointer[string]
	done  chan struct{}
	err   error // set when it is done

	before error // error of the try before: if a server does not answer, each try takes seconds
}

// Migrate changes the tables to the form of this version, if necessary, and waits for that. If
// several callers begin at once, one does it, and the others wait.
func (s *Store) Migrate(ctx context.Context) error { return s.tables(ctx, 0) }

// tables ensures the form of the tables, and waits at most so long for it; 0: without a bound.
func (s *Store) tables(ctx context.Context, most time.Duration) error {
	c := s.change()
	if c == nil {
		return s.say("its file", s.file.Check())
	}
	var late <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-c.done:
		return s.say("migrate", c.err)
	case <-ctx.Done():
		return s.say("migrate", ctx.Err())
	case <-late:
		err := fmt.Errorf("%w: %s, since %s", ErrChanging, *c.what.Load(),
			c.since.UTC().Format(time.RFC3339))
		if c.before != nil {
			err = fmt.Errorf("%w; the last try: %w", err, c.before)
		}
		return s.say("migrate", err)
	}
}

// change returns the try that is under way, or a new one; nil if the tables are right.
func (s *Store) change() *changing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready || s.changing != nil {
		return s.changing
	}
	c := &changing{since: time.Now(), done: make(chan struct{}), before: s.lastTry}
	c.says("asked for the version of its tables, and waiting for the answer or for another server " +
		"that changes them")
	s.changing = c
	go func() {
		err := s.migrate(s.life, c)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			err = s.file.Take()
		}
		s.ready, s.changing, s.lastTry, c.err = err == nil, nil, err, err
		close(c.done)
	}()
	return c
}

func (c *changing) says(text string) { c.what.Store(&text) }

func (s *Store) migrate(ctx context.Context, c *changing) error {
	var options []goose.ProviderOption
	if s.at.file != "" {
		// SQLite has no lock that outlasts a transaction, so the lock is a lock of a file.
		if err := os.MkdirAll(filepath.Dir(s.at.file), 0o700); err != nil {
			return err
		}
		lock, err := proc.WaitFree(ctx, s.at.file+".lock")
		if err != nil {
			return err
		}
		defer lock.Free()
		if err := s.private(); err != nil {
			return err
		}
	} else {
		l, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
		if err != nil {
			return err
		}
		options = append(options, goose.WithSessionLocker(l))
	}
	p, err := s.provider(options...)
	if err != nil {
		return err
	}
	has, known, err := versions(ctx, p)
	switch {
	case err != nil:
		return err
	case has > known:
		// It is not known how a later version of muster changes its tables.
		return fmt.Errorf("its tables are of version %d, this muster knows %d: run the newer one", has,
			known)
	case has > 0 && has < known:
		c.says(fmt.Sprintf("its tables are being changed from version %d to %d, which takes minutes "+
			"where there are millions of jobs", has, known))
	}
	_, err = p.Up(ctx)
	return err
}

func (s *Store) provider(options ...goose.ProviderOption) (*goose.Provider, error) {
	dialect := goose.DialectPostgres
	if s.at.file != "" {
		dialect = goose.DialectSQLite3
	}
	return goose.NewProvider(dialect, s.write, s.schema, append(options,
		goose.WithDisableGlobalRegistry(true))...)
}

// versions returns the version of the tables, and the last version that this muster knows.
func versions(ctx context.Context, p *goose.Provider) (has, known int64, err error) {
	list := p.ListSources()
	has, err = p.GetDBVersion(ctx)
	return has, list[len(list)-1].Version, err
}

// private creates the file of SQLite, if it does not exist, so that no other user can read the
// output of hosts. SQLite gives its mode to the files beside it.
func (s *Store) private() error {
	f, err := os.OpenFile(s.at.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
