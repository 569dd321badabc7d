package applies

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/keys"
)

// A Place is a branch of a repository from which entries come: what of it is in force, and how the
// last look at it went.
type Place struct {
	Name    string    `json:"name"`
	Commit  string    `json:"commit,omitempty"` // in force; empty: none was yet
	Subject string    `json:"subject,omitempty"`
	Signer  string    `json:"signer,omitempty"`  // of that commit; empty: nobody asked for one
	Version int64     `json:"version,omitempty"` // of the apply that put it in force
	Since   jobs.Time `json:"since,omitzero"`    // it is in force
	Look    Look      `json:"look"`

	// Accept is a commit that may come into force although history goes back to it.
	Accept string `json:"accept,omitempty"`

	Asks  int64 `json:"-"` // number of the last ask
	Doubt error `json:"-"` // why no server has signed this; nil: one has
	kept  string
}

// A Look says how the last look at a place went.
type Look struct {
	Seen    string    `json:"seen,omitempty"` // the newest commit that is known
	At      jobs.Time `json:"at,omitzero"`
	Reached jobs.Time `json:"reached,omitzero"`  // the last look that could read it
	Asked   int64     `json:"asked,omitempty"`   // number of the last ask that was heard
	Error   string    `json:"error,omitempty"`   // why that commit is not in force; empty: it is
	Refused bool      `json:"refused,omitempty"` // what is in it is wrong; else it could not be read
	Adrift  int       `json:"adrift"`            // entries that differed from the commit; -1: not known
}

// The names of fields about places, and of the form of the former.
const (
	placeField = "place:"
	askField   = "ask:"
)

// ReadPlaces returns what is known of places, by name. One that no server has signed has only a
// doubt.
func (s *Store) ReadPlaces(ctx context.Context, names ...string) (map[string]Place, error) {
	out := map[string]Place{}
	if len(names) == 0 {
		return out, nil
	}
	var fields []string
	for _, name := range names {
		fields = append(fields, placeField+name, askField+name)
	}
	list, err := s.c.Redis().HMGet(ctx, keys.Hub("applies", ""), fields...).Result()
	if err != nil {
		return nil, s.c.Say("applies", err)
	}
	for i, name := range names {
		p := Place{Name: name}
		if kept, is := list[2*i].(string); is {
			text, doubt := s.by.Vouched(placeField+name, kept)
			if doubt == nil {
				doubt = codec.Strictly(text, &p)
			}
			if doubt != nil || p.Name != name {
				p = Place{Name: name, Doubt: errors.Join(doubt, queue.ErrStale)}
			}
			p.kept = kept
		}
		asks, _ := list[2*i+1].(string)
		p.Asks, _ = strconv.ParseInt(asks, 10, 64) // none: 0
		out[name] = p
	}
	return out, nil
}

// PreparePlace returns the change of a place, as ReadPlaces has read it, to what it is now. Its
// check returns queue.ErrStale if another server has changed the place meanwhile.
func (s *Store) PreparePlace(was, now Place) (hub.Prepared, error) {
	text, err := json.Marshal(now)
	if err != nil {
		return hub.Prepared{}, err
	}
	field := placeField + now.Name
	kept, err := s.by.Vouch(field, string(text))
	if err != nil {
		return hub.Prepared{}, err
	}
	applies := keys.Hub("applies", "")
	check := func(ctx context.Context, r redis.Cmdable) error {
		is, err := r.HGet(ctx, applies, field).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if is != was.kept {
			return queue.ErrStale
		}
		return nil
	}
	return hub.Prepared{Keys: []string{applies}, Check: check,
		Write: func(ctx context.Context, p redis.Pipeliner) { p.HSet(ctx, applies, field, kept) }}, nil
}

// SavePlace makes the change of PreparePlace.
func (s *Store) SavePlace(ctx context.Context, was, now Place) error {
	change, err := s.PreparePlace(was, now)
	if err == nil {
		err = hub.Make(ctx, s.c, change)
	}
	return s.c.Say("applies", err)
}

// AskPlace asks the server with the duty to look at a place at once; it returns the number of the
// ask. The place has heard it when its Asked is as high.
func (s *Store) AskPlace(ctx context.Context, name string) (int64, error) {
	n, err := s.c.Redis().HIncrBy(ctx, keys.Hub("applies", ""), askField+name, 1).Result()
	return n, s.c.Say("applies", err)
}
