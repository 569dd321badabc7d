package depth

import (
	"context"
	"errors"
	"testing"
	"time"

	"muster/jobs/queue/read"
)

// pretended zones have depths that a test says.
type pretended struct {
	list  []string
	depth map[string]int64
	away  error
}

func (p *pretended) Zones(context.Context) ([]string, error) { return p.list, p.away }

func (p *pretended) Depth(_ context.Context, zone string) (read.Depth, error) {
	n, known := p.depth[zone]
	if !known {
		return read.Depth{}, errors.New("the zone cannot be read")
	}
	return read.Depth{Zone: zone, Queued: n, Due: n / 2}, nil
}

func all(string) bool { return true }

// A day of looks is kept: those of the last hour singly, older ones as the most of five minutes.
// A time in which the server could not look has no number.
func TestADayIsRememberedAndNothingIsMadeUp(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 0, 0, 2, 0, time.UTC)
	p := &pretended{list: []string{"default", "eu"}, depth: map[string]int64{"default": 1}}
	b := &Book{Zones: p, Depths: p, Now: func() time.Time { return at }}
	if l := b.Past(all); !l.Since.IsZero() || len(l.Zones) != 0 {
		t.Errorf("before the first look: %+v", l)
	}
	begun := at
	for range 30 * 60 * 4 { // 30 hours
		p.away = nil
		if gone := at.Sub(begun); gone > 20*time.Hour && gone < 21*time.Hour {
			p.away = errors.New("Redis is away")
		}
		if err := b.RunOnce(t.Context()); err == nil {
			t.Fatal("a zone that cannot be read, or Redis that is away, is no error")
		}
		at = at.Add(Every)
	}
	at = at.Add(-Every)
	l := b.Past(all)
	if !l.Since.Equal(begun) || len(l.Zones) != 1 || l.Zones[0].Zone != "default" {
		t.Fatalf("since %s, zones %d", l.Since, len(l.Zones))
	}
	list := l.Zones[0].Samples
	if n := len(list); n < 480 || n > 540 {
		t.Errorf("%d samples are kept", n)
	}
	if old := at.Sub(list[0].At.Time); old > 24*time.Hour || old < 24*time.Hour-6*time.Minute {
		t.Errorf("the oldest is of %s ago", old)
	}
	gaps := 0
	for i := 1; i < len(list); i++ {
		if apart := list[i].At.Sub(list[i-1].At.Time); apart > 55*time.Minute {
			gaps++
		} else if apart > 6*time.Minute || apart <= 0 {
			t.Errorf("%s between two samples", apart)
		}
	}
	if gaps != 1 {
		t.Errorf("%d gaps, want that of Redis", gaps)
	}
}

// The peak of five minutes stays when they are joined.
func TestThePeakOfAJoinedTimeStays(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 0, 0, 2, 0, time.UTC)
	p := &pretended{list: []string{"default"}, depth: map[string]int64{}}
	b := &Book{Zones: p, Depths: p, Now: func() time.Time { return at }}
	for i := range 2 * 60 * 4 { // two hours
		if p.depth["default"] = 10; i == 130 {
			p.depth["default"] = 5000
		}
		if err := b.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		at = at.Add(Every)
	}
	peaks := 0
	for _, s := range b.Past(all).Zones[0].Samples {
		if s.Queued == 5000 && s.Due == 2500 {
			peaks++
		}
	}
	if peaks != 1 {
		t.Errorf("%d samples have the peak", peaks)
	}
	if l := b.Past(func(string) bool { return false }); len(l.Zones) != 0 {
		t.Errorf("who sees no zone gets %+v", l.Zones)
	}
}
