package calendar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/scripts"
	"muster/server/stock"
	"muster/server/web"
	"muster/windows"
)

// Times is the timetable as the hub keeps it. Proven also returns why it is not believed.
// SetTimetable wraps queue.ErrChanged if somebody else was faster.
type Times interface {
	Proven(ctx context.Context) (t windows.Timetable, doubt, err error)
	TimetableMark(ctx context.Context) (string, error)
	SetTimetable(ctx context.Context, t windows.Timetable, e jobs.Alert) (int64, error)
	PrepareTimetable(t windows.Timetable, e jobs.Alert) (hub.Prepared, error)
}

// Calendar reads the timetable that is in force, and changes it.
type Calendar struct {
	Times   Times
	Stock   *stock.Store
	Catalog func() *scripts.Catalog
	Now     func() time.Time
	Owned   Owned // nil: no entry comes from elsewhere

	mu    sync.Mutex
	table windows.Timetable // that was read last
	last  *windows.Book     // its book; nil: none was read yet
	doubt error             // why it is not believed; nil: it is
	read  time.Time
}

// ErrUnread says that the hub has a timetable whose texts cannot be read.
var ErrUnread = errors.New("the timetable in Redis cannot be read; apply the files anew, all of " +
	"them: `muster windows apply FILE … --prune-all`")

// Read returns the timetable in force and its book. Its errors are ready to be answered.
func (c *Calendar) Read(ctx context.Context) (windows.Timetable, *windows.Book, error) {
	table, book, err := c.Kept(ctx)
	if errors.Is(err, ErrUnread) {
		err = huma.Error500InternalServerError(err.Error())
	}
	return table, book, err
}

// Book is Read for callers that need no timetable.
func (c *Calendar) Book(ctx context.Context) (*windows.Book, error) {
	_, book, err := c.Read(ctx)
	return book, err
}

// Kept returns what is agreed now; ErrUnread is wrapped, and the timetable is there, if only its
// texts cannot be read.
func (c *Calendar) Kept(ctx context.Context) (windows.Timetable, *windows.Book, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mark, err := c.Times.TimetableMark(ctx)
	if err != nil {
		return windows.Timetable{}, nil, web.Problem(err)
	}
	if c.last != nil && c.table.Mark == mark && (c.doubt == nil || c.Now().Sub(c.read) < doubtKept) {
		return c.table, c.last, nil
	}
	table, doubt, err := c.Times.Proven(ctx)
	if err != nil {
		return table, nil, web.Problem(err)
	}
	c.doubt, c.read = doubt, c.Now()
	table.Known = c.table.Known
	book, err := table.Book()
	if err != nil {
		// It was read before it was kept: another version of muster reads otherwise.
		return table, nil, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	table.Known = book.Known()
	c.table, c.last = table, book
	return table, book, nil
}

// doubtKept is the time for which a timetable that is not believed is kept: a server may sign it.
const doubtKept = 5 * time.Second

// Doubt reads the timetable, and returns why it is not believed; nil: it is, or it cannot be read.
func (c *Calendar) Doubt(ctx context.Context) error {
	if _, _, err := c.Kept(ctx); err != nil && !errors.Is(err, ErrUnread) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doubt
}

// forget has the next reader read the timetable anew.
func (c *Calendar) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
}

// agreeTries bounds the tries at a change that somebody else overtakes.
const agreeTries = 5

// A manner says how to change a timetable.
type manner struct {
	check bool // only return the differences
	anew  bool // all texts are replaced: those that are there need not be readable
}

// agree changes the timetable: change returns the new one, made of the one in force, and the event
// to publish. agree returns the version and the differences.
func (c *Calendar) agree(ctx context.Context, how manner,
	change func(windows.Timetable, *windows.Book) (windows.Timetable, jobs.Alert, error)) (
	api.WindowsChanged, error) {
	for try := 1; ; try++ {
		table, book, unread, err := c.ground(ctx, how)
		if err != nil {
			return api.WindowsChanged{}, err
		}
		if err := c.proven(ctx, how); err != nil {
			return api.WindowsChanged{}, err
		}
		next, event, err := change(table, book)
		if err != nil {
			return api.WindowsChanged{}, err
		}
		out := api.WindowsChanged{Version: table.Version, Already: event.Event == "",
			Notes: []string{}}
		next, then, err := next.Settle(book, c.Now().UTC().Truncate(time.Second))
		if err != nil {
			return out, web.Refusal(web.Mistakes("body.files", err))
		}
		out.Change = book.Compare(then)
		out.Notes = append(unread, c.doubts(book, then, out.Change)...)
		if err := c.Owned.refuse(ctx, out.Change); err != nil {
			return out, err
		}
		if how.check || out.Already {
			return out, nil
		}
		event.Detail["void"] = out.Void
		out.Version, err = c.Times.SetTimetable(ctx, next, event)
		c.forget() // somebody may put the one before back, under its own mark
		if !errors.Is(err, queue.ErrChanged) || try == agreeTries {
			return out, web.Problem(err)
		}
	}
}

// ground returns the timetable and the book with which a change begins, and notes about them. If a
// change replaces all of a timetable that cannot be read, the book is empty: there must be a way
// out.
func (c *Calendar) ground(ctx context.Context, how manner) (table windows.Timetable,
	book *windows.Book, notes []string, err error) {
	notes = []string{}
	if !how.anew {
		table, book, err = c.Read(ctx)
		return table, book, notes, err
	}
	table, book, err = c.Kept(ctx)
	if errors.Is(err, ErrUnread) {
		book, err = windows.NewBook(windows.Agreed{}), nil
		notes = []string{fmt.Sprintf("what was agreed until now (version %d) cannot be read: "+
			"all is told as added, and every approval that does not hold as void", table.Version)}
	}
	return table, book, notes, err
}
