package frame

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a-h/templ"
	"github.com/danielgtaylor/huma/v2"

	"muster/server/web"
)

// text is a part of a page that says something.
func text(id, words string) Part {
	return Part{ID: id, Live: true, Body: templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, words)
		return err
	})}
}

// framed serves a page on a real connection to a person, and returns its address. The panics of its
// requests go to the channel, if there is one.
func framed(t *testing.T, person string, v View, died ...chan<- any) string {
	t.Helper()
	who := web.Caller{Name: person}
	f := NewFrame(Needs{Stopping: make(chan struct{}),
		Identify: func(*http.Request) (web.Caller, error) { return who, nil }},
		Content{Views: map[string]View{"/page": v}})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				died[0] <- v
			}
		}()
		f.ServeHTTP(&web.Exchange{ResponseWriter: w, Who: who}, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// An eventOf is an event of a stream, with its part, if it has one.
type eventOf struct {
	name, data string
	piece
}

// watch opens the page, and returns the events of its stream.
func watch(t *testing.T, url string) <-chan eventOf {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/live?at=/page", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	all, over := make(chan eventOf), make(chan struct{})
	t.Cleanup(func() { stop(); <-over })
	go func() {
		defer close(over)
		defer close(all)
		defer res.Body.Close()
		var one eventOf
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if name, is := strings.CutPrefix(lines.Text(), "event: "); is {
				one = eventOf{name: name}
			}
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				continue
			}
			if one.data = data; one.name == "part" && json.Unmarshal([]byte(data), &one.piece) != nil {
				t.Errorf("not a part: %s", data)
			}
			select {
			case all <- one:
			case <-ctx.Done():
				return
			}
		}
	}()
	return all
}

// A look at a whole page that takes long holds nothing up, and brings back nothing that is older than
// what the browser has.
func TestALongLookHoldsNothingUp(t *testing.T) {
	t.Parallel()
	var quick atomic.Int64
	release := make(chan struct{})
	url := framed(t, "user:ann", func(h House, r *http.Request) (Show, error) {
		n := quick.Add(1)
		if h.Light {
			return Show{Light: true, Turn: "1", Parts: []Part{text("state", fmt.Sprint("quick ", n))}}, nil
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return Show{Light: true, Turn: "1", Parts: []Part{text("state", fmt.Sprint("slow ", n)), text("rest", "slow")}}, nil
	})
	parts := watch(t, url)
	for range 4 {
		if got := <-parts; got.ID != "state" || !strings.HasPrefix(got.HTML, "quick") {
			t.Fatalf("came: %+v", got)
		}
	}
	close(release)
	for got := range parts {
		if strings.HasPrefix(got.HTML, "slow ") {
			t.Fatalf("older than the browser's: %+v", got)
		}
		if got.ID == "rest" {
			return
		}
	}
	t.Error("the stream has ended")
}

// When the turn of a page changes, all of it is looked at again, with nothing that is older.
func TestAChangedTurnBringsTheWholePage(t *testing.T) {
	t.Parallel()
	var turn atomic.Int64
	var changed atomic.Pointer[time.Time]
	url := framed(t, "user:ann", func(h House, r *http.Request) (Show, error) {
		now := turn.Load()
		since, shared := web.Since(r.Context())
		if !shared {
			t.Error("a look of a stream may not use what others were answered")
		}
		s := Show{Light: true, Turn: fmt.Sprint(now), Parts: []Part{text("state", fmt.Sprint("turn ", now))}}
		if !h.Light {
			words := fmt.Sprint("rest of turn ", now)
			if at := changed.Load(); at != nil && !since.Before(*at) {
				words += ", made since then"
			}
			s.Parts = append(s.Parts, text("rest", words))
		}
		return s, nil
	})
	turn.Store(1)
	for got := range watch(t, url) {
		if got.HTML == "rest of turn 1" && changed.Load() == nil {
			at := time.Now()
			changed.Store(&at)
			turn.Store(2)
		}
		if got.HTML == "rest of turn 2, made since then" {
			return
		}
	}
	t.Error("the stream has ended")
}

// A panic in a look beside a stream is one of the request of the stream: the server takes it there.
func TestAPanicBesideAStreamEndsThatStream(t *testing.T) {
	t.Parallel()
	died := make(chan any, 1)
	url := framed(t, "user:ann", func(h House, _ *http.Request) (Show, error) {
		if !h.Light {
			panic("a mistake in a page")
		}
		return Show{Light: true, Turn: "1", Parts: []Part{text("state", "quick")}}, nil
	}, died)
	for range watch(t, url) { // until the stream ends
	}
	why := fmt.Sprint(<-died)
	if !strings.HasPrefix(why, "a mistake in a page") || !strings.Contains(why, "stream_test.go") {
		t.Errorf("it died of %s", why)
	}
}

// While a part of a page is not known the page says so, whatever else comes, and stops once it is.
func TestTroubleIsToldUntilItIsOver(t *testing.T) {
	t.Parallel()
	var quick atomic.Int64
	url := framed(t, "user:ann", func(h House, _ *http.Request) (Show, error) {
		n := quick.Load()
		if !h.Light {
			if n < 6 {
				return Show{}, errors.New("Redis is away")
			}
			return Show{Light: true, Turn: "1", Parts: []Part{text("rest", "all is well")}}, nil
		}
		return Show{Light: true, Turn: "1", Parts: []Part{text("state", fmt.Sprint("quick ", quick.Add(1)))}}, nil
	})
	trouble, known := false, false
	for got := range watch(t, url) {
		switch {
		case got.name == "trouble" && strings.Contains(got.data, "Redis is away") && !known:
			trouble = true
		case got.name == "part" && got.ID == "rest":
			if known = true; !trouble {
				t.Fatal("no trouble was told")
			}
		case got.name == "part" && trouble && !known:
			trouble = false // this event took it from the page, so it must come again before the next one
		case got.name == "part" && known:
			return
		case got.name == "trouble":
			t.Fatalf("trouble after its end: %s", got.data)
		}
	}
	t.Error("the stream has ended")
}

// A person looks at one whole page at once, and all persons together at few.
func TestPlacesForWholePages(t *testing.T) {
	t.Parallel()
	p := newPlaces()
	ended, end := context.WithCancel(t.Context())
	end()
	ann := p.take(t.Context(), "ann")
	if p.take(ended, "ann") != nil {
		t.Error("a person has two places")
	}
	leave := []func(){ann}
	for i := 1; i < wholesMax; i++ {
		leave = append(leave, p.take(t.Context(), fmt.Sprint("person ", i)))
	}
	if p.take(ended, "zoe") != nil {
		t.Error("there are too many places")
	}
	came := make(chan func())
	go func() { came <- p.take(t.Context(), "ann") }()
	ann()
	leave[0] = <-came
	for _, f := range leave {
		f()
	}
	if len(p.of) != 0 || len(p.all) != 0 {
		t.Errorf("%d persons and %d places are left", len(p.of), len(p.all))
	}
}

// All open pages together use a bounded part of a processor, as long as none is looked at too rarely.
func TestLooksOfManyPagesAreRare(t *testing.T) {
	t.Parallel()
	p := &Frame{}
	s := &stream{eye: eye{pages: p}}
	const took = 10 * time.Millisecond
	for _, c := range []struct {
		open int64
		got  sight
		want time.Duration
	}{
		{1, sight{took: took}, 500 * time.Millisecond},
		{10, sight{took: took}, 2 * time.Second},
		{40, sight{took: took}, 8 * time.Second},
		{200, sight{took: took}, glanceMost},
		{1, sight{took: time.Hour}, glanceMost},
		{200, sight{took: time.Hour, err: errors.New("away")}, troublePause},
	} {
		p.lives.open.Store(c.open)
		if got := s.pause(c.got, glancePause, glanceMost); got != c.want {
			t.Errorf("%d open pages, after %s (%v): a pause of %s, want %s", c.open, c.got.took, c.got.err, got, c.want)
		}
	}
}

// A stream goes on while nobody can say who listens, and ends once that is somebody else, nobody, or
// somebody whose time is over.
func TestAStreamAsksAgainWhoListens(t *testing.T) {
	t.Parallel()
	ann := web.Caller{Name: "user:ann"}
	away := huma.Error503ServiceUnavailable("Redis is away")
	for name, c := range map[string]struct {
		who   web.Caller
		err   error
		until time.Time
		want  bool
		soon  bool // it asks again soon
	}{
		"the same":                {ann, nil, time.Time{}, true, false},
		"somebody else":           {web.Caller{Name: "user:bob"}, nil, time.Time{}, false, false},
		"nobody":                  {web.Caller{}, nil, time.Time{}, false, false},
		"removed":                 {web.Caller{}, huma.Error401Unauthorized("no session"), time.Time{}, false, false},
		"not known":               {web.Caller{}, away, time.Time{}, true, true},
		"not known, over":         {web.Caller{}, away, time.Now().Add(-time.Second), false, true},
		"not known, not over yet": {web.Caller{}, errors.New("dial"), time.Now().Add(time.Hour), true, true},
	} {
		who := ann
		who.Until = c.until
		s := &stream{w: &web.Exchange{Who: who}, eye: eye{pages: &Frame{needs: Needs{
			Identify: func(*http.Request) (web.Caller, error) { return c.who, c.err }}}}}
		got := s.prove()
		soon := !s.proven.IsZero() && time.Since(s.proven) > proveEvery-troublePause-time.Second
		if got != c.want || soon != c.soon {
			t.Errorf("%s: goes on: %v, want %v; asks again soon: %v, want %v", name, got, c.want, soon, c.soon)
		}
	}
}
