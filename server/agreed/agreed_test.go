package agreed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"muster/jobs"
)

type kept struct {
	parts map[string]jobs.AgreedPart
	err   error
}

func (k kept) Agreed(context.Context) (map[string]jobs.AgreedPart, error) { return k.parts, k.err }

func TestCompare(t *testing.T) {
	t.Parallel()
	has := func(mark int64) map[string]jobs.AgreedPart {
		return map[string]jobs.AgreedPart{jobs.AgreedWindows: {Part: jobs.AgreedWindows, Mark: mark}}
	}
	noted := jobs.AgreedLost{Since: jobs.Time{Time: time.Unix(1, 0)}, Note: "schedules"}
	down := errors.New("no answer")
	for _, c := range []struct {
		name  string
		now   map[string]jobs.AgreedPart
		noted jobs.AgreedLost
		h     History
		note  string
		empty bool
		err   error
	}{
		{"a new house", nil, jobs.AgreedLost{}, kept{}, "", true, nil},
		{"nobody keeps history", nil, jobs.AgreedLost{}, nil, "", true, nil},
		{"all is there", has(2), jobs.AgreedLost{}, kept{parts: has(2)}, "", false, nil},
		{"windows are gone", nil, jobs.AgreedLost{}, kept{parts: has(2)}, jobs.AgreedWindows, true, nil},
		{"an older copy came back", has(1), jobs.AgreedLost{}, kept{parts: has(2)}, jobs.AgreedWindows, false, nil},
		{"a server has noted it", has(2), noted, nil, "schedules", false, nil},
		{"noted without words", has(2), jobs.AgreedLost{Since: noted.Since}, nil, "not known", false, nil},
		{"history does not answer", has(2), jobs.AgreedLost{}, kept{err: down}, "", false, down},
		{"nor does Redis know anything", nil, jobs.AgreedLost{}, kept{err: down}, "", true, down},
	} {
		l := Compare(t.Context(), c.now, c.noted, c.h)
		if !strings.Contains(l.Note, c.note) || (l.Note == "") != (c.note == "") ||
			l.Empty != c.empty || !errors.Is(l.Unasked, c.err) {
			t.Errorf("%s: %+v", c.name, l)
		}
	}
}
