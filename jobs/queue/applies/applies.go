package applies

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/keys"
)

// Kept is the number of the results that are kept.
const Kept = 1000

// Store keeps the results of applies, and origins.
type Store struct {
	c  *queue.Conn
	by hub.Voucher // signs both
}

// New returns the store behind a connection.
func New(c *queue.Conn, by hub.Voucher) *Store { return &Store{c, by} }

// An Origin is the place from which an entry comes.
type Origin struct {
	Name    string `json:"origin"`
	Version int64  `json:"version"` // of the apply that has set it
}

// A State is what an apply is worked out from.
type State struct {
	Version int64
	Origins map[string]Origin // by the ID of an entry; those that no server has signed are left out
	Doubts  []string          // the IDs of the others
	read    map[string]string
}

// The names of the fields in which the version and the results are, and of the form of the latter.
const (
	versionField = "version"
	resultField  = "result:"
	idField      = "id:"
)

// State reads the version in force, and the origins.
func (s *Store) State(ctx context.Context) (State, error) {
	out := State{Origins: map[string]Origin{}}
	var version *redis.StringCmd
	var origins *redis.MapStringStringCmd
	_, err := s.c.Redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		version = p.HGet(ctx, keys.Hub("applies", ""), versionField)
		origins = p.HGetAll(ctx, keys.Hub("origins", ""))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return out, s.c.Say("applies", err)
	}
	out.Version, _ = strconv.ParseInt(version.Val(), 10, 64) // none: 0
	out.read = origins.Val()
	for id, kept := range out.read {
		text, doubt := s.by.Vouched(originName(id), kept)
		var o Origin
		if doubt != nil || codec.Strictly(text, &o) != nil || o.Name == "" {
			out.Doubts = append(out.Doubts, id)
			continue
		}
		out.Origins[id] = o
	}
	slices.Sort(out.Doubts)
	return out, nil
}

// OriginOf returns the origin of an entry; empty: it has none.
func (s *Store) OriginOf(ctx context.Context, ids ...string) (map[string]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := s.c.Redis().HMGet(ctx, keys.Hub("origins", ""), ids...).Result()
	if err != nil {
		return nil, s.c.Say("origins", err)
	}
	out := map[string]string{}
	for i, id := range ids {
		kept, is := list[i].(string)
		if !is {
			continue
		}
		var o Origin
		text, doubt := s.by.Vouched(originName(id), kept)
		if doubt == nil && codec.Strictly(text, &o) == nil && o.Name != "" {
			out[id] = o.Name
		}
	}
	return out, nil
}

func originName(id string) string { return "origin/" + id }

// A Deed is an apply that is ready: what it writes beside the entries.
type Deed struct {
	ID      string            // names the result
	Result  []byte            // JSON
	Set     map[string]string // IDs to their origins from now on; empty: none any more
	Event   jobs.Alert
	Changes []hub.Prepared // of the entries
}

// Apply makes all changes of a deed, or none. It returns the version that is in force then.
// queue.ErrStale is wrapped if anything that the deed was made from was changed meanwhile.
func (s *Store) Apply(ctx context.Context, was State, d Deed) (int64, error) {
	version := was.Version + 1
	own, err := s.prepare(was, d, version)
	if err == nil {
		err = hub.Make(ctx, s.c, append(slices.Clone(d.Changes), own)...)
	}
	if errors.Is(err, queue.ErrChanged) {
		err = fmt.Errorf("%w: %w", queue.ErrStale, err)
	}
	return version, s.c.Say("applies", err)
}

// prepare returns the change of the results and the origins.
func (s *Store) prepare(was State, d Deed, version int64) (hub.Prepared, error) {
	applies, origins := keys.Hub("applies", ""), keys.Hub("origins", "")
	number := strconv.FormatInt(version, 10)
	result, err := s.by.Vouch(resultField+number, string(d.Result))
	if err != nil {
		return hub.Prepared{}, err
	}
	line, err := codec.EventLine(d.Event)
	if err != nil {
		return hub.Prepared{}, err
	}
	set, err := s.originFields(d.Set, version)
	if err != nil {
		return hub.Prepared{}, err
	}
	var older []string // the fields of a result that goes
	check := func(ctx context.Context, r redis.Cmdable) error {
		is, err := r.HGet(ctx, applies, versionField).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		now, err := r.HGetAll(ctx, origins).Result()
		if err == nil && (cmp.Or(is, "0") != strconv.FormatInt(was.Version, 10) ||
			!sameFields(now, was.read)) {
			err = queue.ErrStale
		}
		if err == nil && version > Kept {
			older, err = s.fieldsOf(ctx, r, version-Kept)
		}
		return err
	}
	return hub.Prepared{Keys: []string{applies, origins}, Check: check,
		Write: func(ctx context.Context, p redis.Pipeliner) {
			p.HSet(ctx, applies, versionField, number, resultField+number, result, idField+d.ID, number)
			if len(older) > 0 {
				p.HDel(ctx, applies, older...)
			}
			for id, text := range set {
				if text == "" {
					p.HDel(ctx, origins, id)
				} else {
					p.HSet(ctx, origins, id, text)
				}
			}
			p.XAdd(ctx, &redis.XAddArgs{Stream: keys.Hub("events", ""), MaxLen: codec.HubEventsMax,
				Approx: true, Values: []any{"e", line}})
		}}, nil
}

// fieldsOf returns the fields in which a result and its id are.
func (s *Store) fieldsOf(ctx context.Context, r redis.Cmdable, version int64) ([]string, error) {
	field := resultField + strconv.FormatInt(version, 10)
	kept, err := r.HGet(ctx, keys.Hub("applies", ""), field).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	text, _ := s.by.Vouched(field, kept)
	var old struct{ ID string }
	_ = json.Unmarshal([]byte(text), &old) // a text that nobody can read has no id
	return []string{field, idField + old.ID}, nil
}

// originFields returns the stored forms of origins by the IDs of their entries.
func (s *Store) originFields(set map[string]string, version int64) (map[string]string, error) {
	out := map[string]string{}
	for id, name := range set {
		if name == "" {
			out[id] = ""
			continue
		}
		text, err := json.Marshal(Origin{name, version})
		if err != nil {
			return nil, err
		}
		if out[id], err = s.by.Vouch(originName(id), string(text)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func sameFields(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, text := range a {
		if b[name] != text {
			return false
		}
	}
	return true
}

// A Result is the result of an apply, as JSON.
type Result struct {
	Version int64
	Text    string
	Doubt   error // why no server has signed it; nil: one has
}

// Results returns the last results, the newest first.
func (s *Store) Results(ctx context.Context, most int) ([]Result, error) {
	version, err := s.version(ctx)
	if err != nil || version == 0 {
		return nil, err
	}
	var names []string
	for n := version; n > max(0, version-int64(min(most, Kept))); n-- {
		names = append(names, strconv.FormatInt(n, 10))
	}
	return s.results(ctx, names)
}

func (s *Store) version(ctx context.Context) (int64, error) {
	text, err := s.c.Redis().HGet(ctx, keys.Hub("applies", ""), versionField).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n, s.c.Say("applies", err)
}

// Result returns the result with an id, or of a version. It wraps queue.ErrNotFound if there is
// none.
func (s *Store) Result(ctx context.Context, id string) (Result, error) {
	number, err := s.c.Redis().HGet(ctx, keys.Hub("applies", ""), idField+id).Result()
	if errors.Is(err, redis.Nil) {
		number, err = id, nil
	}
	if err != nil {
		return Result{}, s.c.Say("applies", err)
	}
	list, err := s.results(ctx, []string{number})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("apply %s: %w", id, queue.ErrNotFound)
	}
	if err != nil {
		return Result{}, err
	}
	return list[0], nil
}

// results returns the results of some versions that are there.
func (s *Store) results(ctx context.Context, numbers []string) ([]Result, error) {
	var fields []string
	for _, n := range numbers {
		fields = append(fields, resultField+n)
	}
	list, err := s.c.Redis().HMGet(ctx, keys.Hub("applies", ""), fields...).Result()
	if err != nil {
		return nil, s.c.Say("applies", err)
	}
	var out []Result
	for i, v := range list {
		kept, is := v.(string)
		if !is {
			continue
		}
		var r Result
		r.Version, _ = strconv.ParseInt(strings.TrimPrefix(fields[i], resultField), 10, 64)
		r.Text, r.Doubt = s.by.Vouched(fields[i], kept)
		out = append(out, r)
	}
	return out, nil
}
