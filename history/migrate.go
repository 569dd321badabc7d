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

// ErrChanging is wrapped while the tables are not yet as this version wants them. Where
// there are millions of jobs a new index takes minutes; who writes and who asks shall hear
// of it, and not hang.
var ErrChanging = errors.New("not usable yet")

// patience is how long a call waits for the tables before it says so.
const patience = 2 * time.Second

// changing is one try to make the tables as this version wants them. It goes on when who
// began it has given up: what is half done would begin anew.
type changing struct {
	since time.Time
	what  atomic.Pointer[string]
	done  chan struct{}
	err   error // when it is done

	before error // of the try before: where a server does not answer, each takes seconds
}

// Migrate makes the tables as this version wants them, unless they are, and waits for
// it. Of several who begin at once one does it, and the others wait.
func (s *Store) Migrate(ctx context.Context) error { return s.tables(ctx, 0) }

// tables sees to the tables, and waits so long for them; 0: as long as it takes.
func (s *Store) tables(ctx context.Context, most time.Duration) error {
	c := s.change()
	if c == nil {
		return nil
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

// change is the try that is under way, or a new one; nil: the tables are right.
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
		s.ready, s.changing, s.lastTry, c.err = err == nil, nil, err, err
		close(c.done)
	}()
	return c
}

func (c *changing) says(text string) { c.what.Store(&text) }

func (s *Store) migrate(ctx context.Context, c *changing) error {
	var options []goose.ProviderOption
	if s.at.file != "" {
		// SQLite has no lock that outlasts a transaction: the lock is one of the system.
		if err := os.MkdirAll(filepath.Dir(s.at.file), 0o700); err != nil {
			return err
		}
		lock, err := proc.WaitFree(ctx, s.at.file+".lock")
		if err != nil {
			return err
		}
		defer lock.Close()
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
		// What a later version of muster does to its tables is not known.
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

// versions are that of the tables, and the last that this muster knows.
func versions(ctx context.Context, p *goose.Provider) (has, known int64, err error) {
	list := p.ListSources()
	has, err = p.GetDBVersion(ctx)
	return has, list[len(list)-1].Version, err
}

// private makes the file of SQLite, if it is not there, so that nobody else can read what
// hosts said. The files beside it get its mode.
func (s *Store) private() error {
	f, err := os.OpenFile(s.at.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
