package history

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"muster/internal/proc"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store is a history.
type Store struct {
	cfg   Config
	at    place
	write *sql.DB // SQLite has one writer: it waits here, and not for a lock of the file
	read  *sql.DB

	mu    sync.Mutex
	ready bool // its tables are there, and as this version wants them
}

const (
	readers    = 4
	writersPG  = 2
	idleFor    = 5 * time.Minute
	sqliteMode = "_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
		"&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_pragma=cache_size(-65536)"
)

// Open makes a store. Nothing is read, and no server is called, before it is used:
// a history that is away stops nobody. The error is about the configuration.
func Open(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	at, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, at: at}
	if at.file != "" {
		err = s.openSQLite()
	} else {
		err = s.openPostgres()
	}
	return s, err
}

func (s *Store) openSQLite() (err error) {
	// What is kept for the file must not be read as part of its name.
	dsn := "file:" + (&url.URL{Path: s.at.file}).EscapedPath() + "?" + sqliteMode
	if s.write, err = sql.Open("sqlite", dsn); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	s.read, err = sql.Open("sqlite", dsn+"&_pragma=query_only(1)")
	if err == nil {
		s.read.SetMaxOpenConns(readers)
	}
	return err
}

func (s *Store) openPostgres() error {
	c, err := pgx.ParseConfig(s.at.url.String())
	if err != nil {
		return errors.New("history.url cannot be read: want postgres://user@host/database")
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	// Read for each connection, so that a new password needs no restart.
	password := stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		if s.cfg.PasswordFile == "" {
			return nil
		}
		text, err := os.ReadFile(s.cfg.PasswordFile)
		if err != nil {
			return fmt.Errorf("history.password_file: %w", err)
		}
		c.Password, _, _ = strings.Cut(string(text), "\n")
		return nil
	})
	s.write = stdlib.OpenDB(*c, password)
	s.write.SetMaxOpenConns(writersPG)
	s.read = stdlib.OpenDB(*c, password)
	s.read.SetMaxOpenConns(readers)
	s.write.SetConnMaxIdleTime(idleFor)
	s.read.SetConnMaxIdleTime(idleFor)
	return nil
}

// Close gives its connections back.
func (s *Store) Close() error { return errors.Join(s.write.Close(), s.read.Close()) }

// Where is the place for people.
func (s *Store) Where() string { return s.cfg.Where() }

// Migrate makes the tables as this version wants them, unless they are. Of several
// who begin at once one does it, and the others wait.
func (s *Store) Migrate(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready {
		return nil
	}
	if err := s.migrate(ctx); err != nil {
		return s.say("migrate", err)
	}
	s.ready = true
	return nil
}

func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	dialect := goose.DialectPostgres
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
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
		dialect = goose.DialectSQLite3
	} else {
		l, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
		if err != nil {
			return err
		}
		options = append(options, goose.WithSessionLocker(l))
	}
	p, err := goose.NewProvider(dialect, s.write, files, options...)
	if err != nil {
		return err
	}
	if err := s.newer(ctx, p); err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
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

// newer refuses tables of a later version of muster: what it does to them is not known.
func (s *Store) newer(ctx context.Context, p *goose.Provider) error {
	list := p.ListSources()
	known := list[len(list)-1].Version
	has, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if has > known {
		return fmt.Errorf("its tables are of version %d, this muster knows %d: run the newer one", has,
			known)
	}
	return nil
}

// say gives an error the operation and the place.
func (s *Store) say(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("history %s: %s: %w", s.Where(), what, err)
}

// tx does f in one transaction that writes.
func (s *Store) tx(ctx context.Context, what string, f func(*sql.Tx) error) error {
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.say(what, err)
	}
	if err := f(tx); err != nil {
		// What went wrong is said; that it was rolled back, too, is no news.
		_ = tx.Rollback()
		return s.say(what, err)
	}
	return s.say(what, tx.Commit())
}

// rows asks, and gives each row to f.
func (s *Store) rows(ctx context.Context, what, query string, args []any,
	f func(scan func(...any) error) error) error {
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return s.say(what, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return s.say(what, err)
		}
	}
	return s.say(what, rows.Err())
}
