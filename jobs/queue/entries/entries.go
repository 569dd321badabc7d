package entries

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/keys"
)

// The bounds of what is kept.
const (
	TextMax  = 1 << 20 // bytes of one entry
	PartMax  = 8 << 20 // bytes of one part
	CountMax = 20_000  // entries of a version
)

// ErrTooLarge is wrapped where more is to be kept than the bounds allow.
var ErrTooLarge = errors.New("too large")

// A Doc is one entry.
type Doc struct {
	Name string `json:"name"`
	Text string `json:"text"` // its document
}

// A PartID names the part of a version that has the entries of a kind and a customer.
type PartID struct {
	Kind     string
	Customer string // empty: of no customer
}

// String returns the text of a PartID.
func (p PartID) String() string { return p.Kind + "/" + p.Customer }

// A Part has the entries of one kind and one customer. It never changes.
type Part struct {
	PartID
	Sum  string
	Docs []Doc // by name
}

// A Version has all entries in force. It never changes; parts that two versions share are the same.
type Version struct {
	Number int64
	Parts  map[PartID]*Part
	Broken map[PartID]error // parts that no server has written so: nothing of them is in force
	mark   string
	head   string // as it is in Redis
	whole  bool   // the next version writes all parts anew, whatever Redis has
	sums   map[string]string
	gone   []string // fields that the next version must not leave
}

// Of returns the parts of a kind, in the order of customers. A nil version has none.
func (v *Version) Of(kind string) []*Part {
	if v == nil {
		return nil
	}
	var out []*Part
	for id, p := range v.Parts {
		if id.Kind == kind {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *Part) int { return strings.Compare(a.Customer, b.Customer) })
	return out
}

// Trouble says which parts are not believed; empty: none.
func (v *Version) Trouble() string {
	var list []string
	for id, err := range v.Broken {
		list = append(list, fmt.Sprintf("%s: %v", id, err))
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// Store keeps the versions.
type Store struct {
	c  *queue.Conn
	by hub.Voucher // signs heads
}

// New returns the store behind a connection.
func New(c *queue.Conn, by hub.Voucher) *Store { return &Store{c, by} }

// The fields of the hash.
const (
	markField = "mark"
	headField = "head"
	partField = "part:"
)

// head is the text that a server signs.
type head struct {
	Number int64             `json:"version"`
	Stamp  string            `json:"stamp"` // random: two versions of one number differ
	Parts  map[string]string `json:"parts"` // the checksum of each
}

func (h head) mark() string { return strconv.FormatInt(h.Number, 10) + "." + h.Stamp }

// ErrUnsigned is wrapped where no server has signed the entries that are in Redis.
var ErrUnsigned = errors.New("no server has signed the entries in Redis: apply the files again")

// ErrWentBack is the error of a version that is older than one that was read before.
var ErrWentBack = errors.New("the entries in Redis are older than those that were in force: it " +
	"has lost its last writes, or somebody put earlier ones back; apply the files again")

// readTries bounds the tries to read a version while others write, one version after the other.
const readTries = 100

// Read returns the version in force now. was is an earlier one; nil: none. If was is in force it is
// returned, at the cost of one field. An older version is refused, with was and ErrWentBack.
func (s *Store) Read(ctx context.Context, was *Version) (*Version, error) {
	if was != nil {
		mark, err := s.c.Redis().HGet(ctx, s.key(), markField).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, s.c.Say("entries", err)
		}
		if mark == was.mark {
			return was, nil
		}
	}
	for range readTries {
		v, err := s.read(ctx, was)
		if err != nil {
			return nil, s.c.Say("entries", err)
		}
		if was != nil && v.Number <= was.Number && v.mark != was.mark {
			return was, ErrWentBack
		}
		mark, err := s.c.Redis().HGet(ctx, s.key(), markField).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, s.c.Say("entries", err)
		}
		if mark == v.mark {
			return v, nil // so its parts are of one version
		}
	}
	return nil, fmt.Errorf("the entries changed %d times while they were read: try again", readTries)
}

// Replaced returns a version without entries that stands for whatever is in Redis now: the change
// that is prepared from it replaces all of that.
func (s *Store) Replaced(ctx context.Context) (*Version, error) {
	list, err := s.c.Redis().HKeys(ctx, s.key()).Result()
	if err != nil {
		return nil, s.c.Say("entries", err)
	}
	is, err := s.c.Redis().HMGet(ctx, s.key(), markField, headField).Result()
	if err != nil {
		return nil, s.c.Say("entries", err)
	}
	v := &Version{}
	v.mark, _ = is[0].(string)
	v.head, _ = is[1].(string)
	for _, field := range list {
		if strings.HasPrefix(field, partField) {
			v.gone = append(v.gone, field)
		}
	}
	return v, nil
}

// Over returns a version with the entries of was that stands for whatever is in Redis now: the
// change that is prepared from it puts the entries of was back.
func (s *Store) Over(ctx context.Context, was *Version) (*Version, error) {
	v, err := s.Replaced(ctx)
	if err == nil {
		v.Number, v.Parts, v.whole = was.Number, was.Parts, true
	}
	return v, err
}

func (s *Store) key() string { return keys.Hub("entries", "") }

// read reads a version; parts that was has are not read again.
func (s *Store) read(ctx context.Context, was *Version) (*Version, error) {
	list, err := s.c.Redis().HMGet(ctx, s.key(), markField, headField).Result()
	if err != nil {
		return nil, err
	}
	v := &Version{Parts: map[PartID]*Part{}, Broken: map[PartID]error{}}
	v.mark, _ = list[0].(string)
	kept, is := list[1].(string)
	if v.head = kept; !is {
		return v, nil
	}
	text, doubt := s.by.Vouched(headField, kept)
	if errors.Is(doubt, queue.ErrKeyAway) {
		return nil, doubt
	}
	var h head
	if doubt == nil {
		doubt = codec.Strictly(text, &h)
	}
	if doubt != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsigned, doubt)
	}
	if v.mark != h.mark() { // a server writes both at once
		return nil, fmt.Errorf("%w: the mark is not that of the head", ErrUnsigned)
	}
	v.Number, v.sums = h.Number, h.Parts
	var wanted []string
	for _, name := range slices.Sorted(maps.Keys(h.Parts)) {
		id := partOf(name)
		if was != nil && was.Parts[id] != nil && was.Parts[id].Sum == h.Parts[name] {
			v.Parts[id] = was.Parts[id]
			continue
		}
		wanted = append(wanted, name)
	}
	for some := range slices.Chunk(wanted, 100) {
		if err := s.parts(ctx, v, some); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// parts reads some parts of a version.
func (s *Store) parts(ctx context.Context, v *Version, names []string) error {
	var fields []string
	for _, name := range names {
		fields = append(fields, partField+name)
	}
	list, err := s.c.Redis().HMGet(ctx, s.key(), fields...).Result()
	if err != nil {
		return err
	}
	for i, name := range names {
		text, _ := list[i].(string)
		id := partOf(name)
		p := &Part{PartID: id, Sum: v.sums[name]}
		if sumOf(text) != p.Sum {
			v.Broken[id] = errors.New("it is not what a server wrote: apply it again")
		} else if err := json.Unmarshal([]byte(text), &p.Docs); err != nil {
			v.Broken[id] = fmt.Errorf("it cannot be read: %w", err)
		} else {
			v.Parts[id] = p
		}
	}
	return nil
}

func partOf(name string) PartID {
	kind, customer, _ := strings.Cut(name, "/")
	return PartID{kind, customer}
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// A Change has the parts that differ in the next version. A part without entries goes.
type Change map[PartID][]Doc

// with returns the change that writes the parts of a version and those of a change.
func (v *Version) with(c Change) Change {
	all := Change{}
	for id, p := range v.Parts {
		all[id] = p.Docs
	}
	maps.Copy(all, c)
	return all
}

// Prepare returns the change to the version after was, whose number is above floor. Its check
// returns queue.ErrStale if was is not in force any more.
func (s *Store) Prepare(was *Version, floor int64, change Change) (hub.Prepared, error) {
	h := head{max(was.Number, floor) + 1, rand.Text()[:8], maps.Clone(was.sums)}
	if h.Parts == nil {
		h.Parts = map[string]string{}
	}
	if was.whole {
		change = was.with(change)
	}
	var set []any
	gone := slices.Clone(was.gone)
	for _, id := range slices.SortedFunc(maps.Keys(change), func(a, b PartID) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Customer, b.Customer))
	}) {
		docs := change[id]
		if len(docs) == 0 {
			delete(h.Parts, id.String())
			gone = append(gone, partField+id.String())
			continue
		}
		text, err := textOf(id, docs)
		if err != nil {
			return hub.Prepared{}, err
		}
		h.Parts[id.String()] = sumOf(text)
		set = append(set, partField+id.String(), text)
	}
	text, err := json.Marshal(h)
	if err != nil {
		return hub.Prepared{}, err
	}
	kept, err := s.by.Vouch(headField, string(text))
	if err != nil {
		return hub.Prepared{}, err
	}
	set = append(set, headField, kept, markField, h.mark())
	check := func(ctx context.Context, r redis.Cmdable) error {
		is, err := r.HMGet(ctx, s.key(), markField, headField).Result()
		if err != nil {
			return err
		}
		mark, _ := is[0].(string)
		if head, _ := is[1].(string); mark != was.mark || head != was.head {
			return queue.ErrStale
		}
		return nil
	}
	return hub.Prepared{Keys: []string{s.key()}, Check: check, Write: func(ctx context.Context,
		p redis.Pipeliner) {
		if len(gone) > 0 {
			p.HDel(ctx, s.key(), gone...)
		}
		p.HSet(ctx, s.key(), set...)
	}}, nil
}

// textOf returns the stored form of a part.
func textOf(id PartID, docs []Doc) (string, error) {
	docs = slices.Clone(docs)
	slices.SortFunc(docs, func(a, b Doc) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range docs {
		if len(d.Text) > TextMax {
			return "", fmt.Errorf("%s %s is %w: it has %d bytes, want at most %d", id.Kind, d.Name,
				ErrTooLarge, len(d.Text), TextMax)
		}
	}
	text, err := json.Marshal(docs)
	if err == nil && len(text) > PartMax {
		err = fmt.Errorf("the entries of kind %s of customer %q are %w: they have %d bytes, want at "+
			"most %d", id.Kind, id.Customer, ErrTooLarge, len(text), PartMax)
	}
	return string(text), err
}
