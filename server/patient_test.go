package server_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/scripts"
	"muster/server"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// stuck is an inventory on a file system that goes away for a while.
type stuck struct {
	away  atomic.Bool
	reads chan struct{} // has an element for each reading that has begun
	back  chan struct{} // closed: the file system answers
	hosts atomic.Pointer[[]fleet.Host]
}

func newStuck(list []fleet.Host) *stuck {
	s := &stuck{reads: make(chan struct{}, 100), back: make(chan struct{})}
	s.hosts.Store(&list)
	return s
}

func (s *stuck) Read(context.Context, time.Time) (*fleet.Inventory, error) {
	if s.away.Load() {
		s.reads <- struct{}{}
		<-s.back // no context ends it
	}
	return fleet.New(*s.hosts.Load())
}

func (s *stuck) Changed(time.Time) bool { return s.away.Load() }

func TestAnInventoryThatHangsIsSeenAndReadWhenItAnswers(t *testing.T) {
	t.Parallel()
	source := newStuck(hosts())
	var later atomic.Int64 // of the server's clock
	w := start(t, setup{source: source, now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	more := append(hosts(), fleet.Host{Name: "new1", Zone: "default", User: "root", Address: "10.0.0.9", Port: 22,
		Fence: fleet.FenceNone})
	source.hosts.Store(&more)
	source.away.Store(true)
	<-source.reads

	var h api.Health
	w.call("GET", "/v1/health", nil, &h)
	if h.Status != "ok" {
		t.Errorf("at once health says %q", h.Status)
	}
	later.Store(int64(time.Minute))
	w.call("GET", "/v1/health", nil, &h)
	if !strings.Contains(h.Status, "inventory: it has been read since ") || h.Hosts != 4 {
		t.Errorf("after a minute health says %+v", h)
	}
	source.away.Store(false)
	close(source.back)
	for late, look := time.After(time.Minute), time.Tick(20*time.Millisecond); h.Hosts != 5 || h.Status != "ok"; {
		w.call("GET", "/v1/health", nil, &h)
		select {
		case <-late:
			t.Fatalf("when it answers health says %+v", h)
		case <-look:
		}
	}
}

func TestAnInventoryThatHangsDoesNotKeepAServerFromItsEnd(t *testing.T) {
	t.Parallel()
	for name, atStart := range map[string]bool{"at the start": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			source := newStuck(hosts())
			defer close(source.back)
			source.away.Store(atStart)
			_, redis := redistest.StartMini(t)
			q, err := queuetest.Open(t.Context(), redis)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			catalog, err := scripts.NewCatalog(nil)
			if err != nil {
				t.Fatal(err)
			}
			s, err := server.New(server.Config{Listen: "unix:" + shortPath(t)}, server.Deps{Queue: stores(q),
				Catalog: catalog, Inventory: source, Log: hclog.NewNullLogger()})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			if !atStart {
				<-s.Ready()
				source.away.Store(true)
			}
			<-source.reads
			stop()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("it does not end")
			}
		})
	}
}
