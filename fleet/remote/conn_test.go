package remote

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeepaliveFindsAFrozenPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peer{mute: true, exec: func(s *peerSession) {
			s.accept()
			_ = s.conn.Wait()
		}}
		client, host := p.piped(t, phases)
		conn, err := client.Connect(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		start := time.Now()
		_, err = conn.Run(t.Context(), Command{Shell: "true", Bound: time.Hour})
		wantKind(t, err, KindLost, true, "it was silent for 45s")
		took(t, start, 3*phases.Keepalive)
	})
}

func TestKeepaliveLeavesAQuietPeerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peer{exec: func(s *peerSession) {
			s.accept()
			time.Sleep(50 * time.Minute)
			s.end("done", 0)
		}}
		client, host := p.piped(t, phases)
		conn, err := client.Connect(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		result, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Hour})
		if err != nil || string(result.Output.Bytes()) != "done" {
			t.Errorf("got %v, %q, want no error, \"done\"", err, result.Output.Bytes())
		}
	})
}

// A host that does not close a session that was closed by us keeps its place
// for ever; only a new connection helps.
func TestASessionThatIsNotClosedClosesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var theirs *freezer
		p := peer{exec: func(s *peerSession) {
			s.accept()
			theirs.frozen.Store(true)
			s.exit(0)
		}}
		client, host := p.piped(t, phases)
		client.dial = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			theirs = &freezer{Conn: newElastic(far), gone: make(chan struct{})}
			go p.serve(theirs)
			return newElastic(near), nil
		}
		defer func() { close(theirs.gone) }()
		conn, err := client.Connect(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		result, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
		if err != nil || !result.Open {
			t.Fatalf("got %+v, %v, want an end with open output", result, err)
		}
		time.Sleep(phases.Channel)
		_, err = conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
		wantKind(t, err, KindUnreachable, false, "it did not close a session within 8s")
	})
}

// More commands than sessions: they wait for each other, and all are run.
func TestSessionsOfAConnectionAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Int32
		release := make(chan struct{})
		p := peer{exec: func(s *peerSession) {
			now.Add(1)
			s.accept()
			<-release
			s.end("ok", 0)
		}}
		client, host := p.piped(t, phases)
		conn, err := client.Connect(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		const commands, allowed = 30, 10 // by OpenSSH, if nothing else is configured
		var runs sync.WaitGroup
		for range commands {
			runs.Go(func() {
				result, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
				if err != nil || string(result.Output.Bytes()) != "ok" {
					t.Errorf("got %q, %v, want ok", result.Output.Bytes(), err)
				}
			})
		}
		synctest.Wait()
		if n := now.Load(); n < 2 || n >= allowed {
			t.Errorf("%d sessions at once, want several and less than %d", n, allowed)
		}
		close(release)
		runs.Wait()
		if n := now.Load(); n != commands {
			t.Errorf("%d commands were run, want %d", n, commands)
		}
	})
}

// freezer is a peer that stops listening, but not talking.
type freezer struct {
	net.Conn
	frozen atomic.Bool
	gone   chan struct{}
}

func (f *freezer) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if f.frozen.Load() {
		<-f.gone
		return 0, net.ErrClosed
	}
	return n, err
}
