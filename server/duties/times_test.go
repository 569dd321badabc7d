package duties

import (
	"context"
	"errors"
	"testing"
)

// board is a timetable with a version, and counts how often a server said that it is in force.
type board struct {
	version int64
	said    int
}

func (b *board) Restate(_ context.Context, may func(int64) error) error {
	err := may(b.version)
	if err == nil {
		b.said++
	}
	return err
}

// A server says of no timetable that it is in force if history has a later one; a history that is
// away stops a server only before it has answered once.
func TestAServerVouchesForNoTimetableBeforeTheLast(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	type step struct {
		version, kept int64
		err           error
		says          bool
	}
	for name, steps := range map[string][]step{
		"history has the same":           {{7, 7, nil, true}, {7, 7, nil, true}},
		"history lags":                   {{8, 7, nil, true}},
		"history has a later one":        {{6, 7, nil, false}, {7, 7, nil, true}},
		"there never was one":            {{0, 0, nil, true}},
		"it vanished":                    {{0, 7, nil, false}},
		"history is away from the start": {{7, 0, away, false}, {7, 7, nil, true}},
		"history goes away":              {{7, 7, nil, true}, {7, 0, away, true}, {8, 0, away, true}, {7, 0, away, false}},
	} {
		b := &board{}
		var now step
		d := &Times{Timetable: b, Kept: func(context.Context) (int64, error) { return now.kept, now.err }}
		for i, s := range steps {
			now, b.version, b.said = s, s.version, 0
			if err := d.RunOnce(t.Context()); err == nil != s.says || b.said == 1 != s.says {
				t.Errorf("%s, step %d: %v, said %d", name, i, err, b.said)
			}
		}
	}
	b := &board{version: 7}
	if err := (&Times{Timetable: b}).RunOnce(t.Context()); err != nil || b.said != 1 {
		t.Errorf("without a history: %v, said %d", err, b.said)
	}
	if err := (&Times{}).RunOnce(t.Context()); err != nil {
		t.Errorf("without a key: %v", err)
	}
}
