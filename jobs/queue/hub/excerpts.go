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
	"muster/windows"
)

// This file is what workers read of the timetable. Beside its texts the hash has an excerpt for
// each scope, made by whoever sets it: a worker reads those of its host, and nothing that others
// agreed. The field "excerpts" says of which version they are; a muster that does not know of
// them sets another version without them.

// excerptField is before the scope in the names of fields.
const excerptField = "excerpt:"

// excerpts are those of a timetable, by scope.
type excerpts struct {
	version int64
	texts   map[string][]byte // nil: the timetable cannot be read here
}

// excerptsOf are those of a timetable. Without any workers read its texts themselves.
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

// put writes them in place of the fields that are there.
func (e excerpts) put(ctx context.Context, p redis.Pipeliner, fields []string) {
	key := keys.Hub("windows", "")
	for _, f := range fields {
		scope, is := strings.CutPrefix(f, excerptField)
		if _, stays := e.texts[scope]; is && !stays || f == "excerpts" {
			p.HDel(ctx, key, f)
		}
	}
	if e.texts == nil {
		return
	}
	for scope, text := range e.texts {
		p.HSet(ctx, key, excerptField+scope, text)
	}
	p.HSet(ctx, key, "excerpts", strconv.FormatInt(e.version, 10))
}

// PutExcerpts writes the excerpts of a timetable that is in force and has none: a muster that
// knows nothing of them has set it. It tells whether it did.
func (q *Timetable) PutExcerpts(ctx context.Context) (bool, error) {
	key, put := keys.Hub("windows", ""), false
	err := q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
		is, err := tx.HMGet(ctx, key, "version", "excerpts").Result()
		if err != nil || is[0] == nil || is[0] == is[1] {
			return err
		}
		t, err := q.Timetable(ctx)
		if err != nil {
			return err
		}
		made := excerptsOf(t)
		if made.texts == nil {
			return nil
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
		return false, nil // somebody changes it, and makes them
	}
	return put, q.c.Say("windows", err)
}

// Agreed tells which version is in force, and compares the clocks, in one call.
func (q *Timetable) Agreed(ctx context.Context) (jobs.Agreed, error) {
	var a jobs.Agreed
	c, _, err := q.c.At(ctx, keys.HubZone)
	if err != nil {
		return a, err
	}
	var now *redis.TimeCmd
	var version *redis.StringCmd
	before := time.Now()
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		now, version = p.Time(ctx), p.HGet(ctx, keys.Hub("windows", ""), "version")
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return a, q.c.Say("windows", err)
	}
	a.Now, a.Skew = jobs.MicrosOf(now.Val()), middle(before).Sub(now.Val())
	if version.Err() == nil {
		a.Version, err = version.Int64()
		return a, q.c.Say("windows", err)
	}
	return a, nil
}

// Excerpts reads what is agreed for some scopes: all of one version.
func (q *Timetable) Excerpts(ctx context.Context, scopes []windows.Scope) (jobs.Excerpts, error) {
	fields := []string{"version", "excerpts"}
	for _, s := range scopes {
		fields = append(fields, excerptField+s.String())
	}
	list, err := q.c.Redis().HMGet(ctx, keys.Hub("windows", ""), fields...).Result()
	if err != nil {
		return jobs.Excerpts{}, q.c.Say("windows", err)
	}
	version, ok := list[0].(string)
	if !ok { // nothing was ever agreed
		x := jobs.Excerpts{}
		for range scopes {
			x.Parts = append(x.Parts, &windows.Excerpt{})
		}
		return x, nil
	}
	if of, ok := list[1].(string); ok && of == version {
		var x jobs.Excerpts
		if x.Version, err = strconv.ParseInt(version, 10, 64); err != nil {
			return x, q.c.Say("windows", err)
		}
		if x.Parts = readExcerpts(list[2:]); x.Parts != nil {
			return x, nil
		}
	}
	table, err := q.Timetable(ctx)
	return jobs.Excerpts{Version: table.Version, Table: &table}, err
}

// readExcerpts reads what HMGET answered; nil: one of it cannot be read here.
func readExcerpts(list []any) []*windows.Excerpt {
	parts := make([]*windows.Excerpt, len(list))
	for i, v := range list {
		text, ok := v.(string)
		if !ok { // nothing is agreed for it
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
