package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/keys"
	"muster/trust"
	"muster/windows"
)

// This file keeps beside the timetable what proves that it is in force: a statement that servers
// sign (package trust). Nodes and servers with a key believe no timetable without it.

// SignedBy returns the timetable with statements of a notary.
func (q *Timetable) SignedBy(n *trust.Notary) *Timetable { return &Timetable{q.c, n} }

// Since returns the time since which the last timetable that was believed here is in force; zero:
// none.
func (q *Timetable) Since() time.Time { return q.notary.Since() }

// Kept reads parts of the timetable, all at one moment.
func (q *Timetable) Kept(ctx context.Context, ask trust.TimesAsked) (trust.KeptTimes, error) {
	k, err := keptIn(ctx, q.c.Redis(), ask)
	return k, q.c.Say("windows", err)
}

func keptIn(ctx context.Context, c redis.Cmdable, ask trust.TimesAsked) (trust.KeptTimes, error) {
	list, err := c.HMGet(ctx, keys.Hub("windows", ""), ask.Fields()...).Result()
	if err != nil {
		return trust.KeptTimes{}, err
	}
	return ask.Kept(list), nil
}

// Proven reads the timetable, and why it is not believed; nil: servers have signed it, or there is
// no key here.
func (q *Timetable) Proven(ctx context.Context) (t windows.Timetable, doubt, err error) {
	k, err := q.Kept(ctx, trust.TimesAsked{Table: true})
	if err != nil {
		return t, nil, err
	}
	_, doubt = q.notary.Examine(k)
	t, err = k.Timetable()
	return t, doubt, q.c.Say("windows", err)
}

// restateAfter is the age of a statement from which it is said anew.
const restateAfter = time.Minute

// Restate says anew that the timetable is in force, unless some server said so just now, if it is
// believed and may, which gets its version, returns nothing. A timetable that never was is signed
// as such.
func (q *Timetable) Restate(ctx context.Context, may func(version int64) error) error {
	signs, err := q.notary.Signs()
	if err != nil || !signs {
		return err
	}
	if k, err := q.Kept(ctx, trust.TimesAsked{}); err != nil || q.notary.Said(k, restateAfter) {
		return err
	}
	for again := true; again; {
		err = q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
			k, err := keptIn(ctx, tx, trust.TimesAsked{Table: true})
			if err != nil {
				return err
			}
			fields, err := q.restated(k, may)
			if err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.HSet(ctx, keys.Hub("windows", ""), fields)
				return nil
			})
			return err
		}, keys.Hub("windows", ""))
		again = errors.Is(err, redis.TxFailedErr)
	}
	return q.c.Say("windows", err)
}

func (q *Timetable) restated(k trust.KeptTimes, may func(version int64) error) (map[string]string,
	error) {
	never := k.Version == "" && k.Table == nil && len(k.Statement) == 0
	if never && q.notary.Never() {
		if err := may(0); err != nil {
			return nil, err
		}
		return q.notary.Prove(q.notary.Next(0, ""), nil, map[string][]byte{})
	}
	t, err := q.notary.Examine(k)
	if err == nil {
		err = may(t.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("the timetable in Redis is not believed: %w", err)
	}
	return q.notary.Restate(q.notary.Anew(*t))
}

// restored returns the fields of a timetable that history has kept, under a new version: no worker
// must take it for the one that it has under the old version. It is signed anew only if it was
// signed before: history has copied it from Redis.
func (q *Timetable) restored(kept map[string]string, version int64) (map[string]string, error) {
	var table map[string]json.RawMessage
	if err := json.Unmarshal([]byte(kept["table"]), &table); err != nil {
		return nil, fmt.Errorf("the timetable that history has cannot be read: %w", err)
	}
	fields := map[string]string{"version": strconv.FormatInt(version, 10)}
	table["version"] = json.RawMessage(fields["version"])
	text, err := json.Marshal(table)
	if err != nil {
		return nil, err
	}
	fields["table"] = string(text)
	if stated, _ := q.notary.Believed(trust.CopyOf(kept)); stated == nil {
		return fields, nil
	}
	proof, err := q.notary.Prove(q.notary.Next(version, ""), text, nil)
	maps.Copy(fields, proof)
	return fields, err
}
