package archive

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Filler puts a copy into an empty Redis. From its beginning nothing can start there.
type Filler struct {
	a     Archive
	names map[string]bool // zones
	note  string          // of the halt
	was   string          // note of the halt that was in force at the time of the copy

	// Tokens says that API tokens come back, also those that were removed since.
	Tokens bool

	Keys  int
	tasks map[string][]jobs.TaskID // by zone

	zone  string // of those that wait
	list  []Record
	bytes int
}

// The bounds of what is written at once.
const (
	fillKeys  = 256
	fillBytes = 4 << 20
)

// underWay is the reason of the halt until a restore has ended.
const underWay = "a restore has begun, and has not ended: call it again, with --replace"

// Fill stops all zones of a copy before anything of it is there.
func (a Archive) Fill(ctx context.Context, zones []string) (*Filler, error) {
	f := &Filler{a: a, names: map[string]bool{keys.HubZone: true}, note: underWay,
		tasks: map[string][]jobs.TaskID{}}
	for _, zone := range zones {
		if zone == keys.HubZone || zone == "" || strings.ContainsAny(zone, "{}") {
			return nil, fmt.Errorf("zone %q cannot be", zone)
		}
		f.names[zone] = true
	}
	return f, f.halt(ctx)
}

// halt writes the halt, with its note, into the hub and all zones.
func (f *Filler) halt(ctx context.Context) error {
	now, err := f.a.c.Now(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	id := strconv.FormatInt(now.UnixMicro(), 10)
	for zone := range f.names {
		key, fields := keys.Zone(zone, "zone", ""), []any{"halted", codec.OneLine(f.note), "haltedAt", id,
			"haltedId", id}
		if zone == keys.HubZone {
			key, fields = keys.Hub("halt", ""), []any{"id", id, "state", "on", "note",
				codec.OneLine(f.note)}
		}
		if err := f.a.c.Redis().HSet(ctx, key, fields...).Err(); err != nil {
			return f.a.c.Say("halt", err)
		}
	}
	return nil
}

// End gives the halt its final reason.
func (f *Filler) End(ctx context.Context, note string) error {
	if f.note = note; f.was != "" {
		f.note += "; before: " + f.was
	}
	return f.halt(ctx)
}

// Add puts a record into Redis, at the latest with Flush.
func (f *Filler) Add(ctx context.Context, r Record) error {
	zone, kind, ok := strings.Cut(strings.TrimPrefix(r.Key, keys.Prefix+"{"), "}:")
	if !ok || !strings.HasPrefix(r.Key, keys.Prefix+"{") || !f.names[zone] {
		return fmt.Errorf("the key %q is none of the zones of the backup", r.Key)
	}
	if zone == keys.HubZone && workOfEvents(kind) {
		return nil
	}
	if passing(kind) || zone == keys.HubZone && (kind == "sessions" ||
		!f.Tokens && (kind == "tokens" || kind == "uses")) {
		return nil
	}
	if zone != f.zone || len(f.list) >= fillKeys || f.bytes >= fillBytes {
		if err := f.Flush(ctx); err != nil {
			return err
		}
		f.zone = zone
	}
	if id, is := strings.CutPrefix(kind, "task:"); is && zone != keys.HubZone {
		f.tasks[zone] = append(f.tasks[zone], jobs.TaskID(id))
	}
	f.list, f.bytes = append(f.list, r), f.bytes+len(r.Dump)
	return nil
}

// workOfEvents reports whether a key of the hub makes a server work on an event: one that waits, or
// that a trigger has collected, something that was not told yet, or a task that waits in a lane.
// Nobody knows which of these were done since the backup, so none begins by itself.
func workOfEvents(kind string) bool {
	return kind == "fed" || kind == "turns" || kind == "triggers" || kind == "lanes" ||
		strings.HasPrefix(kind, "inbox:") || strings.HasPrefix(kind, "lane:")
}

// Flush writes what waits.
func (f *Filler) Flush(ctx context.Context) error {
	if len(f.list) == 0 {
		return nil
	}
	c, _, err := f.a.c.At(ctx, f.zone)
	if err != nil {
		return err
	}
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, r := range f.list {
			if r.Dump != nil {
				p.Restore(ctx, r.Key, r.TTL, string(r.Dump))
			} else if fields := f.changed(r); len(fields) > 0 {
				p.HSet(ctx, r.Key, fields...)
			}
		}
		return nil
	})
	f.Keys += len(f.list)
	f.list, f.bytes = f.list[:0], 0
	if err != nil && strings.Contains(err.Error(), "DUMP payload version") {
		err = fmt.Errorf("this Redis is older than that of the backup: use one of the same version, or "+
			"a later one: %w", err)
	}
	return f.a.c.Say("restore", err)
}

// changed returns the fields of a zone for a Redis in which nobody works yet and nothing may start.
// It keeps the note of the hub's halt.
func (f *Filler) changed(r Record) (fields []any) {
	if r.Key == keys.Hub("halt", "") {
		f.was = haltOf(r.Fields)
		return nil
	}
	for i := 0; i+1 < len(r.Fields); i += 2 {
		name, value := r.Fields[i], r.Fields[i+1]
		switch {
		case strings.HasPrefix(name, "n:") || strings.HasPrefix(name, "halted") || name == "run" ||
			name == "seat":
			// Children are gone. Another run than that of any server makes the first caller begin an
			// epoch: the zone is frozen, and history is asked before anything starts.
		default:
			fields = append(fields, name, value)
		}
	}
	return append(fields, "run", "restored")
}

// haltOf returns the note of a halt, if it was in force.
func haltOf(fields []string) string {
	of := map[string]string{}
	for i := 0; i+1 < len(fields); i += 2 {
		of[fields[i]] = fields[i+1]
	}
	if of["state"] != "on" {
		return ""
	}
	return of["note"]
}
