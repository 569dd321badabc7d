package depth

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue/read"
)

// Every is the time between two looks.
const Every = 15 * time.Second

const (
	fine    = time.Hour       // so long each look is kept
	coarse  = 5 * time.Minute // later the largest numbers of such a time
	kept    = 24 * time.Hour
	zoneMax = 500 // zones that are remembered
)

// Zones lists the zones that Redis knows.
type Zones interface {
	Zones(ctx context.Context) ([]string, error)
}

// Depths counts the jobs that wait in a zone.
type Depths interface {
	Depth(ctx context.Context, zone string) (read.Depth, error)
}

// A Book remembers the depths of zones.
type Book struct {
	Zones  Zones
	Depths Depths
	Now    func() time.Time

	mu    sync.Mutex
	since time.Time // of the first look; zero: there was none
	past  map[string][]api.DepthSample
}

// RunOnce looks at each zone once. A zone that cannot be read has a gap, and the others have not.
func (b *Book) RunOnce(ctx context.Context) error {
	zones, err := b.Zones.Zones(ctx)
	if err != nil {
		return err
	}
	var wrong []error
	for _, zone := range zones {
		d, err := b.Depths.Depth(ctx, zone)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		b.add(zone, api.DepthSample{At: jobs.Time{Time: b.Now().UTC()}, Queued: d.Queued,
			Again: d.Again, Due: d.Due})
	}
	b.thin(b.Now())
	return errors.Join(wrong...)
}

// add remembers a look at a zone.
func (b *Book) add(zone string, s api.DepthSample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.past == nil {
		b.past, b.since = map[string][]api.DepthSample{}, s.At.Time
	}
	if _, known := b.past[zone]; known || len(b.past) < zoneMax {
		b.past[zone] = append(b.past[zone], s)
	}
}

// thin joins older looks, and forgets those that are too old.
func (b *Book) thin(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for zone, list := range b.past {
		if list = thinned(list, now); len(list) == 0 {
			delete(b.past, zone)
			continue
		}
		b.past[zone] = list
	}
}

// thinned returns looks in order with those joined that are older than an hour: the largest numbers
// of each five minutes stand for all of these.
func thinned(list []api.DepthSample, now time.Time) []api.DepthSample {
	out := list[:0]
	for _, s := range list {
		if now.Sub(s.At.Time) > kept {
			continue
		}
		last := len(out) - 1
		if now.Sub(s.At.Time) > fine && last >= 0 &&
			out[last].At.Truncate(coarse).Equal(s.At.Truncate(coarse)) {
			out[last].Queued = max(out[last].Queued, s.Queued)
			out[last].Again = max(out[last].Again, s.Again)
			out[last].Due = max(out[last].Due, s.Due)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Past returns what is remembered of the zones that a caller sees, in the order of their names.
func (b *Book) Past(sees func(zone string) bool) api.DepthList {
	l := api.DepthList{Every: Every.Seconds(), Zones: []api.ZoneDepth{}}
	names := slices.DeleteFunc(b.names(), func(zone string) bool { return !sees(zone) })
	b.mu.Lock()
	defer b.mu.Unlock()
	l.Since = jobs.Time{Time: b.since}
	for _, zone := range names {
		if list := b.past[zone]; len(list) > 0 {
			l.Zones = append(l.Zones, api.ZoneDepth{Zone: zone, Samples: slices.Clone(list)})
		}
	}
	return l
}

// names returns the zones that are remembered, in order. Whether a caller sees one takes a look at
// all hosts, so nobody is asked while the book is held.
func (b *Book) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.past))
}
