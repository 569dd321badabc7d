package inner

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muster/events/inner"
	"muster/jobs"
)

// hostsPlace has the version of the inventory up to which changes are told. While they are being
// told, a blank, the next version and the number of changes that are told follow.
const hostsPlace = "hosts"

// diff holds the changes that are being told, so that they are found once.
type diff struct {
	place string // "from to"
	list  []inner.HostChange
}

// hosts tells which hosts have changed in the inventory.
func (f *Feeder) hosts(ctx context.Context, wants func(string) bool) error {
	for {
		version, err := f.Versions.Version(ctx)
		if err != nil || version == "" {
			return err
		}
		words := strings.Fields(f.places.At[hostsPlace])
		if len(words) == 0 || !f.any(wants, inner.OfHosts()) {
			return f.step(ctx, map[string]string{hostsPlace: version}, nil)
		}
		if len(words) < 4 {
			if words[0] == version {
				return nil
			}
			// From now on these two are compared, whatever is published meanwhile.
			words = []string{words[0], version, strconv.FormatInt(f.places.Steps, 10), "0"}
			if err := f.step(ctx, map[string]string{hostsPlace: strings.Join(words, " ")},
				nil); err != nil {
				return err
			}
		}
		if err := f.compare(ctx, words, wants); err != nil {
			return err
		}
	}
}

// compare tells the next changes between two versions.
func (f *Feeder) compare(ctx context.Context, words []string, wants func(string) bool) error {
	v := inner.Versions{From: words[0], To: words[1], At: f.Now()}
	v.Step, _ = strconv.ParseInt(words[2], 10, 64)
	told, _ := strconv.Atoi(words[3]) // a text that somebody has changed begins anew
	if name := strings.Join(words[:3], " "); f.diff.place != name {
		before, err := f.Versions.Hosts(ctx, v.From)
		if err != nil {
			return err
		}
		after, err := f.Versions.Hosts(ctx, v.To)
		if err != nil {
			return err
		}
		f.diff = diff{place: name, list: inner.Changes(before, after)}
		if len(before) == 0 {
			f.Log.Error("changes of hosts are not told: Redis has forgotten the inventory with which "+
				"the present one would be compared", "version", v.From)
			f.diff.list = nil
		}
	}
	told = min(max(told, 0), len(f.diff.list))
	next := min(told+stepMax, len(f.diff.list))
	var list []inner.Told
	for _, c := range f.diff.list[told:next] {
		if e := inner.OfHost(c, v); wants(e.Kind) {
			list = append(list, e)
		}
	}
	to := v.To
	if next < len(f.diff.list) {
		words[3] = strconv.Itoa(next)
		to = strings.Join(words, " ")
	}
	if err := f.step(ctx, map[string]string{hostsPlace: to}, list); err != nil {
		return err
	}
	if to == v.To {
		f.diff = diff{}
	}
	return nil
}

// The places of facts: the mark of those that were told, and of each host what was told.
const (
	factsPlace = "facts"
	factPlace  = "fact:"
)

// keptAtOnce bounds the hosts of a step without events.
const keptAtOnce = 1000

// facts tells which facts of hosts have changed.
func (f *Feeder) facts(ctx context.Context, wants func(string) bool) error {
	if !wants(inner.FactChanged) {
		return f.forget(ctx, nil, "")
	}
	mark, err := f.Facts.FactsMark(ctx)
	known, begun := f.places.At[factsPlace]
	if mark = cmp.Or(mark, "none"); err != nil || begun && known == mark {
		return err
	}
	all, mark, err := f.Facts.Facts(ctx)
	if err != nil {
		return err
	}
	at, list := map[string]string{}, []inner.Told{}
	flush := func() error {
		err := f.step(ctx, at, list)
		at, list = map[string]string{}, nil
		return err
	}
	for _, host := range slices.Sorted(maps.Keys(all)) {
		name, facts := factPlace+host, all[host]
		text, err := json.Marshal(inner.Lasting(facts.Facts))
		if err != nil {
			return err
		}
		if string(text) == f.places.At[name] {
			continue
		}
		at[name] = string(text)
		if e, ok := f.fact(facts, f.places.At[name]); ok && begun {
			list = append(list, e)
		}
		if len(list) >= stepMax || len(at) >= keptAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return f.forget(ctx, all, cmp.Or(mark, "none"))
}

// fact returns the event of a host of the inventory whose facts differ from what was told.
func (f *Feeder) fact(facts jobs.HostFacts, told string) (inner.Told, bool) {
	if _, there := f.find(facts.Host); !there {
		return inner.Told{}, false
	}
	before := map[string]string{}
	_ = json.Unmarshal([]byte(told), &before) // a text that cannot be read counts as none
	return inner.OfFacts(facts, before, f.find)
}

// forget drops what was told of hosts that have no facts any more, and sets the mark.
func (f *Feeder) forget(ctx context.Context, all map[string]jobs.HostFacts, mark string) error {
	at := map[string]string{}
	for name := range f.places.At {
		host, is := strings.CutPrefix(name, factPlace)
		if _, there := all[host]; is && !there {
			at[name] = ""
		}
		if len(at) >= keptAtOnce {
			if err := f.step(ctx, at, nil); err != nil {
				return err
			}
			at = map[string]string{}
		}
	}
	at[factsPlace] = mark
	return f.step(ctx, at, nil)
}
