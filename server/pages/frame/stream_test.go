package frame

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a-h/templ"

	"muster/server/web"
)

// text is a part of a page that says something.
func text(id, words string) Part {
	return Part{ID: id, Live: true, Body: templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, words)
		return err
	})}
}

// framed serves a page on a real connection, and returns its address.
func framed(t *testing.T, v View) string {
	t.Helper()
	f := NewFrame(Needs{Stopping: make(chan struct{}),
		Identify: func(*http.Request) (web.Caller, error) { return web.Caller{Name: "user:ann"}, nil }},
		Content{Views: map[string]View{"/page": v}})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.ServeHTTP(&web.Exchange{ResponseWriter: w, Who: web.Caller{Name: "user:ann"}}, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// watch opens the page, and returns the parts that its stream brings.
func watch(t *testing.T, url string) <-chan piece {
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
	parts, over := make(chan piece), make(chan struct{})
	t.Cleanup(func() { stop(); <-over })
	go func() {
		defer close(over)
		defer close(parts)
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			var one piece
			if !is || json.Unmarshal([]byte(data), &one) != nil || one.ID == "" {
				continue
			}
			select {
			case parts <- one:
			case <-ctx.Done():
				return
			}
		}
	}()
	return parts
}

// A look at a whole page that takes long holds nothing up, and brings back nothing that is older than
// what the browser has.
func TestALongLookHoldsNothingUp(t *testing.T) {
	t.Parallel()
	var quick atomic.Int64
	release := make(chan struct{})
	url := framed(t, func(h House, r *http.Request) (Show, error) {
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
	url := framed(t, func(h House, r *http.Request) (Show, error) {
		now := turn.Load()
		since, shared := web.Since(r.Context())
		if at := changed.Load(); !shared || !h.Light && at != nil && now == 2 && since.Before(*at) {
			t.Errorf("a whole look may use what was begun at %s (%v)", since, shared)
		}
		s := Show{Light: true, Turn: fmt.Sprint(now), Parts: []Part{text("state", fmt.Sprint("turn ", now))}}
		if !h.Light {
			s.Parts = append(s.Parts, text("rest", fmt.Sprint("rest of turn ", now)))
		}
		return s, nil
	})
	turn.Store(1)
	parts := watch(t, url)
	for got := range parts {
		if got.HTML == "rest of turn 1" {
			at := time.Now()
			changed.Store(&at)
			turn.Store(2)
		}
		if got.HTML == "rest of turn 2" {
			return
		}
	}
	t.Error("the stream has ended")
}

// Few whole pages are looked at at once, however many are open: each may hold a task in memory.
func TestFewWholePagesAreLookedAtAtOnce(t *testing.T) {
	t.Parallel()
	const pages = 12
	var now, most, all atomic.Int64
	url := framed(t, func(h House, _ *http.Request) (Show, error) {
		if h.Light {
			return Show{Light: true, Turn: "1", Parts: []Part{text("state", "quick")}}, nil
		}
		n := now.Add(1)
		defer now.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		runtime.Gosched()
		return Show{Light: true, Turn: "1", Parts: []Part{text("rest", fmt.Sprint("rest ", all.Add(1)))}}, nil
	})
	var each sync.WaitGroup
	for range pages {
		parts := watch(t, url)
		each.Go(func() {
			for got := range parts {
				if got.ID == "rest" {
					return
				}
			}
		})
	}
	each.Wait()
	if most.Load() > wholesMax {
		t.Errorf("%d whole pages were looked at at once, want at most %d", most.Load(), wholesMax)
	}
}

// All open pages together use a bounded part of a processor.
func TestLooksOfManyPagesAreRare(t *testing.T) {
	t.Parallel()
	const took = 10 * time.Millisecond
	p := &Frame{}
	s := &stream{eye: eye{pages: p}}
	for _, c := range []struct {
		open int64
		want time.Duration
	}{{1, 200 * time.Millisecond}, {10, 2 * time.Second}, {200, 40 * time.Second}} {
		p.lives.open.Store(c.open)
		if got := s.pause(took); got != c.want {
			t.Errorf("%d open pages: a pause of %s, want %s", c.open, got, c.want)
		}
	}
}
