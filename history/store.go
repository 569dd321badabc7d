package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"muster/internal/files"
)

// passwordMax bounds the file with the password.
const passwordMax = 4 << 10 // bytes

// Store is access to one history.
type Store struct {
	cfg   Config
	at    place
	write *sql.DB // SQLite has one writer: calls wait here, rather than for a lock of the file
	read  *sql.DB

	file   files.Opened
	schema fs.FS // the changes of the tables, in order
	also   atomic.Pointer[func(context.Context, *sql.Tx, Batch) error]

	// life ends when the store is closed, and ends the work that continues without a caller.
	life context.Context
	end  context.CancelFunc

	mu       sync.Mutex
	ready    bool      // its tables exist, in the form of this version
	changing *changing // nil: no change of the tables is under way
	lastTry  error     // of the try before this one
}

const (
	readers    = 4
	writersPG  = 2
	idleFor    = 5 * time.Minute
	sqliteMode = "_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
		"&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_pragma=cache_size(-65536)"
)

// Open returns a Store. It reads nothing and calls no server before the first use, so a history
// that is away does not prevent a start. An error is a mistake in the configuration.
func Open(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	at, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	schema, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, at: at, schema: schema, file: files.Opened{Path: at.file}}
	HandleOf(s).Also(func(context.Context, *sql.Tx, Batch) error { return nil })
	s.life, s.end = context.WithCancel(context.Background())
	if at.file != "" {
		err = s.openSQLite()
	} else {
		err = s.openPostgres()
	}
	return s, err
}

func (s *Store) openSQLite() (err error) {
	// Escaped, because characters of the file name could be read as parameters.
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
		text, err := files.Read(s.cfg.PasswordFile, passwordMax)
		if err != nil {
			return fmt.Errorf("history.password_file: %w", err)
		}
		c.Password, _, _ = strings.Cut(string(text), "\n")
		return nil
	})
	s.write = stdlib.OpenDB(*c, password)
	s.write.SetMaxOpenConns(writersPG)
	// The server's guess about two conditions may be wrong by a factor of a thousand. It would then
	// read and sort all rows that match, although one index has the page in order.
	inOrder := stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "set enable_bitmapscan = off")
		return err
	})
	s.read = stdlib.OpenDB(*c, password, inOrder)
	s.read.SetMaxOpenConns(readers)
	s.write.SetConnMaxIdleTime(idleFor)
	s.read.SetConnMaxIdleTime(idleFor)
	return nil
}

// Close closes the connections.
func (s *Store) Close() error {
	s.end()
	s.mu.Lock()
	c := s.changing
	s.mu.Unlock()
	if c != nil {
		<-c.done
	}
	return errors.Join(s.write.Close(), s.read.Close())
}

// Where returns the place for people.
func (s *Store) Where() string { return s.cfg.Where() }

// say adds the operation and the place to an error.
func (s *Store) say(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("history %s: %s: %w", s.Where(), what, err)
}

// tx runs f in one transaction that writes.
func (s *Store) tx(ctx context.Context, what string, f func(*sql.Tx) error) error {
	if err := s.tables(ctx, patience); err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.say(what, err)
	}
	if err := f(tx); err != nil {
		// The first error counts: a failed rollback adds nothing to it.
		_ = tx.Rollback()
		return s.say(what, err)
	}
	return s.say(what, tx.Commit())
}

// rows runs a query, and calls f for each row.
func (s *Store) rows(ctx context.Context, what, query string, args []any,
	f func(scan func(...any) error) error) error {
	if err := s.tables(ctx, patience); err != nil {
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
