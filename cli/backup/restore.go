package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"muster/api"
	"muster/history"
	"muster/history/snapshot"
	"muster/internal/backupfile"
	"muster/jobs"
	"muster/jobs/queue/archive"
	"muster/jobs/queue/form"
	"muster/jobs/queue/wipe"
)

// Restored is the answer of backup restore.
type Restored struct {
	head
	Summary  summary `json:"summary"`
	Keys     int     `json:"keys"` // of Redis, that were restored
	Rows     int     `json:"rows"` // of SQL
	DryRun   bool    `json:"dry_run"`
	KeepSQL  bool    `json:"keep_sql"`
	Continue bool    `json:"continue"`
	Tokens   bool    `json:"tokens"`
	settled
}

// settled says what became of open work.
type settled struct {
	Ended     int `json:"ended"`     // jobs whose end SQL knew
	Unknown   int `json:"unknown"`   // jobs that ended unknown
	Chains    int `json:"chains"`    // that were stopped
	Schedules int `json:"schedules"` // that continue with their next tick
}

// orders are the orders of the person who restores.
type orders struct {
	path     string
	reason   string
	yes      string // name of the installation, given beforehand
	replace  bool   // delete what is in the way
	keepSQL  bool   // SQL has survived, and knows more
	proceed  bool   // work continues: nobody has worked since the backup
	tokens   bool
	dryRun   bool
	identity []string
}

// restoring is one restore under way.
type restoring struct {
	place
	orders
	own  backupfile.Identities
	file *os.File
	r    Restored
	in   io.Reader                        // the answer of the person
	say  func(format string, args ...any) // to the person
}

// read passes the parts of the backup on, from its beginning.
func (b *restoring) read(to opened) error {
	if _, err := b.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return backupfile.Read(bufio.NewReaderSize(b.file, 1<<20), b.own, b.check(), to.part)
}

// examine reads the whole backup, before anything is changed, and fits it to this house.
func (b *restoring) examine() error {
	keys, rows := 0, 0
	err := b.read(opened{
		head:    func(h head) error { b.r.head = h; return b.fits(h) },
		record:  func(archive.Record) error { keys++; return nil },
		row:     func([]any) error { rows++; return nil },
		summary: func(s summary) error { b.r.Summary = s; return nil },
	})
	if err == nil && (keys != b.r.Summary.Keys || rows != b.r.Summary.Rows || b.r.Form == 0) {
		err = fmt.Errorf("it has %d keys and %d rows, and says %d and %d", keys, rows, b.r.Summary.Keys,
			b.r.Summary.Rows)
	}
	return err
}

// fits returns an error if this muster, or this house, can do nothing with a backup.
func (b *restoring) fits(h head) error {
	switch {
	case h.Form != formNow || h.Least > form.Mine:
		return fmt.Errorf("muster %s has made it in a form that this muster does not know: use that one",
			h.Version)
	case h.Installation != b.keys.Installation():
		return fmt.Errorf("it is of the installation %q, and the key of servers here is of %q",
			h.Installation, b.keys.Installation())
	}
	return nil
}

// refuse returns an error if the house lives, is that of somebody else, or has something that the
// restore would destroy.
func (b *restoring) refuse(ctx context.Context, watch time.Duration) error {
	if err := b.foreign(ctx); err != nil {
		return err
	}
	found, err := wipe.New(b.redis).Alive(ctx, watch)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("somebody works with %s: %s. Stop all servers and masters first; one that was "+
			"killed counts as alive for 15 s", b.redis.Config().Where(), strings.Join(found, "; "))
	}
	if err != nil {
		return err
	}
	if b.proceed && !b.r.Quiet {
		return errors.New("--continue is only for a backup of a house in which nobody worked: when " +
			"this one was made, somebody did, so that its jobs may have run since")
	}
	return b.inTheWay(ctx)
}

// inTheWay returns an error if something would be replaced that nobody has given up, or if what
// must be there is not.
func (b *restoring) inTheWay(ctx context.Context) error {
	if err := b.store.Migrate(ctx); err != nil {
		return err
	}
	h := history.HandleOf(b.store)
	version, err := snapshot.Version(ctx, h)
	if err != nil {
		return err
	}
	empty, err := snapshot.Empty(ctx, h)
	if err != nil {
		return err
	}
	kinds, err := wipe.New(b.redis).Count(ctx)
	if err != nil {
		return err
	}
	var errs []error
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case b.keepSQL && (!b.history || !b.r.History):
		say("--keep-sql: there is no history, which would have to know what has ended since the backup")
	case b.keepSQL && empty:
		say("--keep-sql: %s is empty: it knows nothing of what has ended since the backup",
			b.store.Where())
	case !b.keepSQL && version != b.r.Tables:
		say("the backup has tables of version %d, and %s has version %d: restore with muster %s, then "+
			"upgrade", b.r.Tables, b.store.Where(), version, b.r.Version)
	case !b.keepSQL && b.history != b.r.History:
		say("one of the backup and the configuration has a history, and the other has none: history.url")
	case !b.keepSQL && !empty && !b.replace:
		say("%s is not empty: --keep-sql leaves it as it is, because it knows more than the backup; "+
			"--replace deletes all that it has", b.store.Where())
	}
	if len(kinds) > 0 && !b.replace {
		say("%s has something of muster: look with muster admin reset --dry-run; --replace deletes it",
			b.redis.Config().Where())
	}
	return errors.Join(errs...)
}

// ask returns an error unless the person gives the name of the installation.
func (b *restoring) ask() error {
	name := b.keys.Installation()
	answer := b.yes
	if answer == "" {
		where := b.store.Where()
		if b.keepSQL {
			where += ", which stays as it is"
		}
		b.say("backup of %s by muster %s: %d keys, %d rows", b.r.Made.Format(time.RFC3339), b.r.Version,
			b.r.Summary.Keys, b.r.Summary.Rows)
		b.say("into %s and %s", b.redis.Config().Where(), where)
		b.say("restore it? Type the name of the installation, %s:", name)
		answer, _ = bufio.NewReader(b.in).ReadString('\n') // an empty input is a no
		answer = strings.TrimSpace(answer)
	}
	if answer != name {
		return fmt.Errorf("nothing was changed: the answer was not %s; to answer beforehand: "+
			"--yes-restore %s", name, name)
	}
	return nil
}

// restore makes the house. It may be called again after it was broken off.
func (b *restoring) restore(ctx context.Context) (err error) {
	if b.replace {
		if _, err := wipe.New(b.redis).Delete(ctx); err != nil {
			return err
		}
	}
	f, err := archive.New(b.redis).Fill(ctx, b.r.Summary.Zones)
	if err != nil {
		return err
	}
	f.Tokens = b.tokens
	if !b.keepSQL {
		if err := b.fillSQL(ctx); err != nil {
			return err
		}
	}
	// Before, the entry would have been replaced with the tables.
	end, err := b.audit(ctx, "installation.restore", b.reason)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(err)) }()
	err = b.read(opened{record: func(r archive.Record) error { return f.Add(ctx, r) }})
	if err = errors.Join(err, f.Flush(ctx)); err != nil {
		return err
	}
	if err := b.settle(ctx, f); err != nil {
		return err
	}
	b.r.Keys = f.Keys
	return f.End(ctx, "restored from the backup of "+b.r.Made.Format(time.RFC3339)+": "+b.reason)
}

// fillSQL replaces all tables, or changes nothing.
func (b *restoring) fillSQL(ctx context.Context) error {
	return snapshot.Replace(ctx, history.HandleOf(b.store), func(to snapshot.Sink) error {
		return b.read(opened{table: to.Table, row: func(values []any) error {
			b.r.Rows++
			return to.Row(values)
		}})
	})
}

// settle begins new epochs, and ends what may have run since the backup.
func (b *restoring) settle(ctx context.Context, f *archive.Filler) error {
	if err := f.Enter(ctx, b.history); err != nil {
		return err
	}
	var s archive.Settled
	var err error
	if !b.proceed && !b.keepSQL {
		if s, err = f.EndOpen(ctx, b.r.Made, b.known); err != nil {
			return err
		}
	}
	if !b.proceed {
		err = f.StopFollowing(ctx, b.r.Made, &s)
	}
	b.r.settled = settled(s)
	return err
}

// known passes the ends of a task's jobs on that SQL has.
func (b *restoring) known(ctx context.Context, id jobs.TaskID, f func([]jobs.JobInfo) error) error {
	for cursor := ""; b.history; {
		list, next, err := b.store.Jobs(ctx, history.Filter{Task: id}, cursor, api.PageMax)
		if err != nil {
			return err
		}
		page := make([]jobs.JobInfo, len(list))
		for i, j := range list {
			page[i] = j.JobInfo
		}
		if err := f(page); err != nil {
			return err
		}
		if cursor = next; next == "" {
			break
		}
	}
	return nil
}
