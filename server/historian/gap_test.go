package historian

import (
	"fmt"
	"testing"

	"muster/api"
	"muster/jobs/queue/read"
)

func TestWhatIsGoneFromAStreamIsNotGuessed(t *testing.T) {
	t.Parallel()
	stream := func(first, last string, added, length int64) read.EventStream {
		return read.EventStream{First: first, Last: last, Added: added, Length: length}
	}
	for _, c := range []struct {
		name    string
		last    string
		entries int64 // that were stored
		read    int64
		stream  read.EventStream
		gap     string // entries that are missing, or none
		after   int64
	}{
		{"nothing yet", "", 0, 0, stream("", "", 0, 0), "none", 0},
		{"from the beginning", "", 0, 3, stream("1-0", "3-0", 3, 3), "none", 3},
		{"a first look too late", "", 0, 3, stream("5-0", "7-0", 7, 3), "4", 7},
		{"a first look, not counted", "", 0, 3, stream("5-0", "7-0", -1, 3), "none", -1},
		{"going on", "3-0", 3, 2, stream("1-0", "5-0", 5, 5), "none", 5},
		{"trimmed by us", "3-0", 3, 2, stream("3-0", "5-0", 5, 3), "none", 5},
		{"trimmed just up to us", "3-0", 3, 2, stream("4-0", "5-0", 5, 2), "none", 5},
		{"trimmed too early", "3-0", 3, 1, stream("9-0", "9-0", 9, 1), "5", 9},
		{"too early, not counted", "3-0", 3, 1, stream("9-0", "9-0", -1, 1), "-1", -1},
		{"began anew", "3-0", 3, 2, stream("9-0", "10-0", 2, 2), "-1", 2},
		{"forgotten", "3-0", 3, 0, stream("", "", 0, 0), "-1", -1},
		{"forgotten, said before", "3-0", -1, 0, stream("", "", 0, 0), "none", -1},
		{"the end forgotten", "10-3", 9, 0, stream("1-0", "9-0", 7, 7), "-1", -1},
		{"numbers, not texts", "9-0", 9, 1, stream("9-0", "10-0", 10, 2), "none", 10},
	} {
		gap, after := gapOf(api.Position{Last: c.last, Entries: c.entries},
			read.EventPage{Entries: c.read, Stream: c.stream})
		got := "none"
		if gap != nil {
			got = fmt.Sprint(gap.Entries)
		}
		if got != c.gap || after != c.after {
			t.Errorf("%s: gap %s, %d entries after it; want %s, %d", c.name, got, after, c.gap, c.after)
		}
	}
}
