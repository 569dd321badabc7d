package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/notify"
)

// toldTasks is the number of tasks whose ends are told while servers are killed: 1,000 in the long
// form.
var toldTasks = flag.Int("notify.tasks", 60, "tasks of the test of notifications under kills")

// ear is a receiver that remembers what it was sent.
type ear struct {
	mu       sync.Mutex
	bodies   map[string]string      // by id
	ids      map[jobs.TaskID]string // of the message about a task
	wrong    []string               // what must not be
	requests int                    // that it took
	minute   int                    // tasks that it was told of within a minute of the first
	since    time.Time
	calm     bool                       // it fails no more
	kills    map[int]chan chan struct{} // at so many requests somebody ends the server first
}

func (k *ear) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	id := r.Header.Get("Webhook-Id")
	var m notify.Message
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		return // the server was killed while it sent
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests++
	if k.requests%7 == 0 && !k.calm {
		w.WriteHeader(503) // it fails now and then, and has taken nothing
		return
	}
	if at := k.kills[k.requests]; at != nil {
		// The server is killed while it waits for this answer, so it must send the message again.
		done := make(chan struct{})
		at <- done
		<-done
	}
	if had, again := k.bodies[id]; again && had != string(body) {
		k.wrong = append(k.wrong, "another message under the id "+id)
	}
	k.bodies[id] = string(body)
	for _, s := range m.Items {
		if had := k.ids[s.Task]; had != "" && had != id {
			k.wrong = append(k.wrong, fmt.Sprintf("task %s under the ids %s and %s", s.Task, had, id))
		}
		if k.since.IsZero() {
			k.since = time.Now()
		}
		if k.ids[s.Task] == "" && time.Since(k.since) < time.Minute {
			k.minute++
		}
		k.ids[s.Task] = id
	}
}

// told returns how many of some tasks were told.
func (k *ear) told(list []jobs.TaskID) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range list {
		if k.ids[id] != "" {
			n++
		}
	}
	return n
}

// A server dies by KILL three times while tasks end, each time with a message on its way: each task is
// told, under one id, with one text.
func TestNoEndOfATaskIsLostOverThreeKills(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 8})
	h := newCellar(t, inventory)
	n := *toldTasks
	kill := make(chan chan struct{})
	k := &ear{bodies: map[string]string{}, ids: map[jobs.TaskID]string{},
		kills: map[int]chan chan struct{}{n/4 + 1: kill, n/2 + 2: kill, n*3/4 + 3: kill}}
	for at := range k.kills {
		if at%7 == 0 {
			k.kills[at+1] = kill
			delete(k.kills, at)
		}
	}
	srv := httptest.NewServer(k)
	t.Cleanup(srv.Close)
	h.write("hook.key", "a key of sixteen bytes or more\n")
	h.write("notify.yaml", fmt.Sprintf(`
receivers:
  hook: {webhook: {url: %q, key_file: %s}}
rules:
  - {name: ends, what: task-ended, to: hook}
`, srv.URL, h.file("hook.key")))
	h.configure(map[string]any{"server": map[string]any{"notify": h.file("notify.yaml")},
		"master": map[string]any{"children": 4, "slots": 8}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	begun := time.Now()
	list := h.submitMany(n)
	for range 3 {
		select {
		case done := <-kill:
			h.server.kill()
			close(done)
			h.server = h.start("server", "--config", h.file("muster.yaml"))
			h.server.await("server listens")
		case <-time.After(5 * time.Minute):
			t.Fatalf("in vain for a kill: %d of %d tasks are told", k.told(list()), n)
		}
	}
	var all []jobs.TaskID
	tick := time.Tick(50 * time.Millisecond)
	for until := time.Now().Add(10 * time.Minute); ; <-tick {
		if all = list(); len(all) == n && k.told(all) == n {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d of %d tasks are told, %d were submitted", k.told(all), n, len(all))
		}
	}
	k.mu.Lock()
	if len(k.wrong) > 0 {
		t.Error(k.wrong)
	}
	t.Logf("%d tasks in %s: %d requests, %d messages, %d tasks told "+
		"within a minute", n, time.Since(begun).Round(time.Second),
		k.requests, len(k.bodies), k.minute)
	k.calm = true
	k.mu.Unlock()
	h.seesMessages(n)
}

// submitMany submits tasks of one host each in the background, some of which meet a server that has
// just gone. It returns a function that returns those which were accepted.
func (h *house) submitMany(n int) func() []jobs.TaskID {
	h.t.Helper()
	c, err := cli.NewClient(h.url, "")
	if err != nil {
		h.t.Fatal(err)
	}
	var mu sync.Mutex
	var done []jobs.TaskID
	var all sync.WaitGroup
	const hands = 8
	tick := time.Tick(20 * time.Millisecond)
	for hand := range hands {
		all.Go(func() {
			for i := hand; i < n; {
				t, err := c.Submit(h.t.Context(), api.Submit{Runbook: "exec", On: nameOf(i % 8),
					Args: map[string]string{"cmd": "true"}}, nil)
				if h.t.Context().Err() != nil {
					return
				}
				if err != nil {
					<-tick // until the next server listens
					continue
				}
				mu.Lock()
				done = append(done, t.Task)
				mu.Unlock()
				i += hands
			}
		})
	}
	h.t.Cleanup(func() { all.Wait(); c.Close() })
	return func() []jobs.TaskID {
		mu.Lock()
		defer mu.Unlock()
		return append([]jobs.TaskID(nil), done...)
	}
}

// seesMessages looks at the messages with the command line, and tries the receiver.
func (h *house) seesMessages(n int) {
	h.t.Helper()
	var l api.MessageList
	if code := h.query(&l, "notify", "ls", "--limit", "500"); code != 0 || len(l.Messages) < min(n, 500) {
		h.t.Errorf("notify ls: exit %d, %d messages", code, len(l.Messages))
	}
	var m api.Message
	if code := h.query(&m, "notify", "test", "hook"); code != 0 || m.State != "delivered" || m.Whats[0] != "test" {
		h.t.Errorf("notify test: exit %d, %+v", code, m)
	}
	if code := h.query(&m, "notify", "show", m.ID); code != 0 || m.Body == nil {
		h.t.Errorf("notify show: exit %d, %+v", code, m)
	}
	h.lookUntil("the receivers", func(*cli.Client) (any, bool, error) {
		var r api.NotifyReceivers // the answer to the last message may be on its way to the outbox
		code := h.query(&r, "notify", "receivers")
		return r, code == 0 && len(r.Receivers) == 1 && r.Receivers[0].Counts["delivered"] >= n, nil
	})
}
