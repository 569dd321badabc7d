package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/jobs"
	"muster/testkit/queuetest"
)

// ear is a client that listens to events.
type ear struct {
	w     *world
	res   *http.Response
	lines *bufio.Scanner
	stop  context.CancelFunc
}

func (w *world) listen(question string, header http.Header) *ear {
	w.t.Helper()
	return w.listenTo("/v1/events"+question, header)
}

func (w *world) listenTo(path string, header http.Header) *ear {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	res, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	e := &ear{w, res, bufio.NewScanner(res.Body), stop}
	w.t.Cleanup(e.close)
	return e
}

func (e *ear) close() {
	e.stop()
	e.res.Body.Close()
}

// next is the next message, whole; empty: the stream has ended.
func (e *ear) next() string {
	var lines []string
	for e.lines.Scan() {
		if e.lines.Text() == "" {
			return strings.Join(lines, "\n")
		}
		lines = append(lines, e.lines.Text())
	}
	return ""
}

// event is the next one that is no comment.
func (e *ear) event() (id, name string, h jobs.Happening) {
	e.w.t.Helper()
	for {
		text := e.next()
		if text == "" {
			e.w.t.Fatal("the stream has ended")
		}
		if strings.HasPrefix(text, ":") {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "id":
				id = value
			case "event":
				name = value
			case "data":
				if err := json.Unmarshal([]byte(value), &h); err != nil {
					e.w.t.Fatalf("%q: %v", value, err)
				}
			}
		}
		return id, name, h
	}
}

// until reads events up to the one of a name for an object, and gives its id.
func (e *ear) until(name string, object jobs.ID) string {
	e.w.t.Helper()
	for {
		id, got, h := e.event()
		if got == name && h.Object == string(object) {
			if h.Event != name || h.Zone == "" || h.At.IsZero() {
				e.w.t.Errorf("event %+v", h)
			}
			return id
		}
	}
}

// usher is a queue that says when a stream has taken its place in a zone.
type usher struct {
	*queuetest.Queue
	seated chan string
}

func (u usher) Events(ctx context.Context, zone, after string, limit int, wait time.Duration) (
	[]jobs.Happening, string, error) {
	list, last, err := u.Queue.Events(ctx, zone, after, limit, wait)
	if after == "$" {
		u.seated <- zone
	}
	return list, last, err
}

func TestEventsOfAllZonesAreTold(t *testing.T) {
	t.Parallel()
	u := usher{seated: make(chan string, 2)}
	w := start(t, setup{wrap: func(q *queuetest.Queue) everything {
		u.Queue = q
		return u
	}})
	w.submit(run("vpn1"))
	w.work("eu", succeed) // all this before anybody listens
	e := w.listen("", nil)
	if got := e.res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	if e.next() != ": muster" {
		t.Error("the stream does not begin at once")
	}
	<-u.seated
	<-u.seated
	task := w.submit(run("fw*")).Task
	e.until("commit", jobs.ID(task))
	w.work("default", succeed)
	w.work("eu", succeed)
	seen := map[string]bool{}
	for len(seen) < 3 {
		_, name, h := e.event()
		if !strings.HasPrefix(h.Object, string(task)) {
			t.Errorf("told what was before: %+v", h)
		}
		if name == "end" && strings.HasPrefix(h.Object, string(task)) {
			seen[h.Object] = true
		}
	}
}

func TestEventsOfOneTask(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	body := run("fw*")
	body.ID = "0123456789"
	e := w.listen("?task=0123456789", http.Header{"Last-Event-Id": {"default=0"}})
	w.submit(run("vpn1"))
	w.submit(body)
	w.submit(run("vpn1"))
	w.work("eu", succeed)
	for {
		_, name, h := e.event()
		if h.Object != "0123456789" && !strings.HasPrefix(h.Object, "0123456789:") {
			t.Errorf("told of %s", h.Object)
		}
		if name == "end" {
			return
		}
	}
}

// happened is all that Redis knows to have happened, once each.
func (w *world) happened() map[string]int {
	w.t.Helper()
	all := map[string]int{}
	for _, zone := range []string{"default", "eu"} {
		list, _, err := w.queue.Events(w.t.Context(), zone, "", 1000, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, h := range list {
			all[key(h)] = 1
		}
	}
	return all
}

// key tells happenings apart: one entry of Redis may have several.
func key(h jobs.Happening) string {
	return strings.Join([]string{h.Zone, h.ID, h.Event, h.Object}, " ")
}

func TestClientThatComesBackMissesNothing(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	w.submit(run("fw*"))
	w.work("default", succeed)
	w.work("eu", succeed)
	all := w.happened()
	// Wherever the client was cut off, it hears the rest, and nothing a second
	// time but what is of the entry that it had heard in part.
	for cutAt := 1; cutAt < len(all); cutAt++ {
		e := w.listen("", http.Header{"Last-Event-Id": {"default=0,eu=0"}})
		told := map[string]int{}
		var last, entry string
		for range cutAt {
			var h jobs.Happening
			last, _, h = e.event()
			told[key(h)]++
			entry = h.Zone + " " + h.ID
		}
		e.close()
		e = w.listen("", http.Header{"Last-Event-Id": {last}})
		for len(told) < len(all) {
			_, _, h := e.event()
			told[key(h)]++
		}
		e.close()
		for k := range told {
			if strings.HasPrefix(k, entry+" ") {
				told[k] = 1
			}
		}
		if diff := cmp.Diff(all, told); diff != "" {
			t.Errorf("cut off after %d of %d: %s", cutAt, len(all), diff)
		}
	}
}

func TestBadPlaceToGoOnIsRefused(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for _, id := range []string{"1", "default", "default=x", "=1-0", "a b=1-0", "default=1-0,", "default=1-0-0",
		strings.Repeat("default=1-0,", 1000) + "default=1-0"} {
		res, text := w.raw("GET", "/v1/events", nil, http.Header{"Last-Event-Id": {id}})
		if res.StatusCode != 422 || !strings.Contains(string(text), "want the id of an event") {
			t.Errorf("%.40q: %s %s", id, res.Status, text)
		}
	}
}

func TestQuietStreamShowsThatItLives(t *testing.T) {
	t.Parallel()
	var minutes atomic.Int64
	w := start(t, setup{now: func() time.Time { return time.Unix(60*minutes.Add(1), 0) }})
	e := w.listen("", nil)
	for _, want := range []string{": muster", ": alive", ": alive"} {
		if got := e.next(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	var open []*ear
	for range 64 {
		e := w.listen("", nil)
		e.next()
		open = append(open, e)
	}
	res, text := w.raw("GET", "/v1/events", nil, nil)
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %s %s", res.Status, text)
	}
	for _, e := range open {
		e.close()
	}
	// The places are free again when the server has seen them go.
	for w.server.Streams() > 0 {
		w.call("GET", "/v1/health", nil, nil)
	}
	e := w.listen("", nil)
	if e.next() != ": muster" {
		t.Error("no stream after the others have gone")
	}
}
