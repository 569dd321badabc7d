package hub

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/trust"
	"muster/windows"
)

// This file makes the part of the timetable that workers read. Beside its texts the hash has an
// excerpt for each scope, written together with the table. A worker reads the excerpts of its host,
// and nothing that others agreed. The field "excerpts" holds their version; a muster that does not
// know excerpts sets another version without them.

// excerptField begins the names of the fields with excerpts; the scope follows.
const excerptField = "excerpt:"

// excerpts holds the excerpts of a timetable, by scope.
type excerpts struct {
	version int64
	texts   map[string][]byte // nil: the timetable cannot be read here

	proof    map[string]string // the fields of the statement
	replaces bool              // a statement that is there goes
}

// excerptsOf returns the excerpts of a timetable. Without any, workers read its texts themselves.
func excerptsOf(t windows.Timetable) excerpts {
	e := excerpts{version: t.Version}
	book, err := t.Book()
	if err != nil {
		return e
	}
	if e.texts, err = book.Excerpts(); err != nil {
		e.texts = nil
	}
	return e
}

// put replaces the excerpts that are there.
func (e excerpts) put(ctx context.Context, p redis.Pipeliner, fields []string) {
	key := keys.Hub("windows", "")
	for _, f := range fields {
		scope, is := strings.CutPrefix(f, excerptField)
		_, stays := e.texts[scope]
		if is && !stays || f == "excerpts" || e.replaces && trust.ProvesTimes(f) {
			p.HDel(ctx, key, f)
		}
	}
	if len(e.proof) > 0 {
		p.HSet(ctx, key, e.proof)
	}
	if e.texts == nil {
		return
	}
	for scope, text := range e.texts {
		p.HSet(ctx, key, excerptField+scope, text)
	}
	p.HSet(ctx, key, "excerpts", strconv.FormatInt(e.version, 10))
}

// PutExcerpts writes the excerpts of a timetable in force that has none, because a muster that does
// not know excerpts has set it. It reports whether it wrote them.
func (q *Timetable) PutExcerpts(ctx context.Context) (bool, error) {
	key, put := keys.Hub("windows", ""), false
	err := q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
		is, err := tx.HMGet(ctx, key, "version", "excerpts").Result()
		if err != nil || is[0] == nil || is[0] == is[1] {
			return err
		}
		k, err := keptIn(ctx, tx, trust.TimesAsked{Table: true})
		if err != nil {
			return err
		}
		t, err := k.Timetable()
		if err != nil {
			return err
		}
		made := excerptsOf(t)
		if made.texts == nil {
			return nil
		}
		if stated, _ := q.notary.Examine(k); stated != nil {
			made.replaces = true
			if made.proof, err = q.notary.Prove(*stated, k.Table, made.texts); err != nil {
				return err
			}
		}
		fields, err := tx.HKeys(ctx, key).Result()
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			made.put(ctx, p, fields)
			return nil
		})
		put = err == nil
		return err
	}, key)
	if errors.Is(err, redis.TxFailedErr) {
		return false, nil // somebody else changes the timetable, and writes its excerpts
	}
	return put, q.c.Say("windows", err)
}

// Agreed returns the version in force, and compares the clocks, in one call.
func (q *Timetable) Agreed(ctx context.Context) (jobs.Agreed, error) {
	var a jobs.Agreed
	c, _, err := q.c.At(ctx, keys.HubZone)
	if err != nil {
		return a, err
	}
	var now *redis.TimeCmd
	var mark *redis.SliceCmd
	before := time.Now()
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		now, mark = p.Time(ctx), p.HMGet(ctx, keys.Hub("windows", ""), "version", "stamp")
		return nil
	})
	if err != nil {
		return a, q.c.Say("windows", err)
	}
	a.Now, a.Skew = jobs.MicrosOf(now.Val()), before.Add(time.Since(before)/2).Sub(now.Val())
	a.Mark = markOf(mark.Val())
	if text, is := mark.Val()[0].(string); is {
		a.Version, err = strconv.ParseInt(text, 10, 64)
	}
	return a, q.c.Say("windows", err)
}

// Excerpts returns the agreements for some scopes, all of one version.
func (q *Timetable) Excerpts(ctx context.Context, scopes []windows.Scope) (jobs.Excerpts, error) {
	fields := []string{"version", "stamp", "excerpts"}
	for _, s := range scopes {
		fields = append(fields, excerptField+s.String())
	}
	list, err := q.c.Redis().HMGet(ctx, keys.Hub("windows", ""), fields...).Result()
	if err != nil {
		return jobs.Excerpts{}, q.c.Say("windows", err)
	}
	version, ok := list[0].(string)
	if !ok { // there was never a timetable
		x := jobs.Excerpts{}
		for range scopes {
			x.Parts = append(x.Parts, &windows.Excerpt{})
		}
		return x, nil
	}
	if of, ok := list[2].(string); ok && of == version {
		var x jobs.Excerpts
		x.Mark = markOf(list)
		if x.Version, err = strconv.ParseInt(version, 10, 64); err != nil {
			return x, q.c.Say("windows", err)
		}
		if x.Parts = readExcerpts(list[3:]); x.Parts != nil {
			return x, nil
		}
	}
	table, err := q.Timetable(ctx)
	return jobs.Excerpts{Version: table.Version, Mark: table.Mark, Table: &table}, err
}

// readExcerpts decodes the answer of HMGET; nil if this version of muster cannot read one of them.
func readExcerpts(list []any) []*windows.Excerpt {
	parts := make([]*windows.Excerpt, len(list))
	for i, v := range list {
		text, ok := v.(string)
		if !ok { // the scope has no agreement
			parts[i] = &windows.Excerpt{}
			continue
		}
		var err error
		if parts[i], err = windows.ReadExcerpt([]byte(text)); err != nil {
			return nil
		}
	}
	return parts
}
