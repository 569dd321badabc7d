package lane

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/jobs"
)

func TestParseMode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		mode Mode
		most int
		err  string
	}{
		"":             {Serial, 1, ""},
		"serial":       {Serial, 1, ""},
		"latest":       {Latest, 1, ""},
		"gate":         {Gate, 1, ""},
		"parallel=3":   {Parallel, 3, ""},
		"parallel":     {err: "no mode of a lane"},
		"gate=2":       {err: "no mode of a lane"},
		"pipeline":     {Pipeline, 1, ""},
		"sometimes":    {err: "want serial, latest, gate, pipeline or parallel=N"},
		"parallel=0":   {err: "from 1 to 100"},
		"parallel=101": {err: "from 1 to 100"},
		"parallel=x":   {err: "from 1 to 100"},
	} {
		m, most, err := ParseMode(text)
		if m != want.mode || most != want.most || (err == nil) != (want.err == "") ||
			err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%q: %q %d %v", text, m, most, err)
		}
	}
}

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// of reads entries: "a serial begun living".
func of(t *testing.T, text string) (list []Entry, fates map[jobs.TaskID]Fate) {
	t.Helper()
	fates = map[jobs.TaskID]Fate{}
	for i, line := range strings.Split(text, ", ") {
		words := strings.Fields(line)
		m, most, err := ParseMode(words[1])
		if err != nil {
			t.Fatal(err)
		}
		e := Entry{Task: jobs.TaskID(words[0]), Mode: m, Most: most,
			Since: jobs.MicrosOf(noon.Add(time.Duration(i-10) * time.Second)), Put: true}
		for _, w := range words[2:] {
			switch w {
			case "begun":
				e.Begun = true
			case "failed":
				e.Failed = true
			case "over":
				e.Over = true
			case "coming":
				e.Put = false
			case "old":
				e.Since = jobs.MicrosOf(noon.Add(-time.Hour))
			default:
				fates[e.Task] = Fate(w)
			}
		}
		list = append(list, e)
	}
	return list, fates
}

func TestWhatIsNextInALane(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lane, want string }{
		{"a serial living", "begin a"},
		{"a serial living, b serial living", "begin a"},
		{"a serial begun living, b serial living", ""},
		{"a serial begun good, b serial living", "begin b, forget a"},
		{"a serial begun bad, b serial living", "begin b, forget a"},
		{"a serial absent, b serial living", "begin b, forget a"},
		{"a serial coming absent, b serial living", ""},
		{"a serial coming old absent, b serial living", "begin b"},
		{"a parallel=2 living, b parallel=2 living, c parallel=2 living", "begin a b"},
		{"a parallel=2 begun living, b serial living, c parallel=2 living", ""},
		{"a parallel=2 begun living, b parallel=2 living, c parallel=3 living", "begin b c"},
		{"a parallel=2 begun living, b serial living, c parallel=3 living", ""},
		{"a gate begun bad failed, b gate living, c parallel=9 living", "failed a"},
		{"a latest begun living, b latest living, c latest living", "supersede b"},
		{"a latest living, b latest living", "begin b, supersede a"},
		{"a latest living, b latest coming absent", "begin a"},
		{"a serial living, b latest living, c latest living, d serial living", "begin a, supersede b"},
		{"a gate begun living, b gate living", ""},
		{"a gate begun good, b gate living", "begin b, forget a"},
		{"a gate begun bad, b gate living", "failed a"},
		{"a gate begun bad failed, b gate living, c serial living", "failed a"},
		{"a serial begun bad, b serial living, c gate living", "begin b, failed a"},
		{"a gate begun bad failed, b gate absent", "forget a b"},
		{"a gate begun bad", "forget a"},
		{"a serial living, b serial begun living", ""},
		{"a parallel=2 living, b serial begun living", "begin a"},
		{"a latest over living, b serial living", "begin b, supersede a"},
		{"a latest over absent, b serial living", "begin b, forget a"},
	} {
		list, fates := of(t, c.lane)
		n := Decide(list, fates, noon)
		var said []string
		for _, part := range []struct {
			word string
			ids  []jobs.TaskID
		}{{"begin", n.Begin}, {"supersede", n.Supersede}, {"forget", n.Forget}, {"failed", n.Failed}} {
			if len(part.ids) > 0 {
				said = append(said, part.word+" "+strings.Trim(fmt.Sprint(part.ids), "[]"))
			}
		}
		if got := strings.Join(said, ", "); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.lane, got, c.want)
		}
	}
}

// Whatever tasks do, a serial lane never has two at work, begins its tasks in their order, and comes
// to its end.
func TestALaneIsInOrderAndEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		modes := rapid.SliceOfN(rapid.SampledFrom([]string{"serial", "latest", "gate", "parallel=2"}),
			1, 8).Draw(t, "modes")
		var list []Entry
		fates := map[jobs.TaskID]Fate{}
		for i, text := range modes {
			m, most, _ := ParseMode(text)
			e := Entry{Task: jobs.TaskID(fmt.Sprint(i)), Mode: m, Most: most, Put: true,
				Since: jobs.MicrosOf(noon.Add(time.Duration(i) * time.Millisecond))}
			list, fates[e.Task] = append(list, e), Living
		}
		var order []jobs.TaskID
		for round := 0; len(list) > 0; round++ {
			if round > 100 {
				t.Fatalf("it does not end: %+v %v", list, fates)
			}
			n := Decide(list, fates, noon.Add(time.Second))
			for i := range list {
				if slices.Contains(n.Begin, list[i].Task) {
					list[i].Begun, order = true, append(order, list[i].Task)
				}
			}
			for _, id := range n.Supersede {
				fates[id] = Absent
			}
			list = slices.DeleteFunc(list, func(e Entry) bool {
				return slices.Contains(n.Forget, e.Task) || slices.Contains(n.Failed, e.Task) // a person
			})
			atWork, most := []jobs.TaskID{}, 0
			for _, e := range list {
				if e.Begun && fates[e.Task] == Living {
					atWork, most = append(atWork, e.Task), max(most, e.Most)
				}
			}
			if len(atWork) > max(most, 1) {
				t.Fatalf("%v at work, and at most %d may be", atWork, most)
			}
			if len(atWork) > 0 {
				fates[rapid.SampledFrom(atWork).Draw(t, "ends")] = rapid.SampledFrom([]Fate{Good, Bad}).
					Draw(t, "fate")
			}
		}
		if !slices.IsSorted(order) {
			t.Fatalf("they began as %v", order)
		}
	})
}
