package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"
)

// phases has a deadline of its own for each phase, so that a test sees which one
// struck.
var phases = Config{
	TCP:       1 * time.Second,
	RecordDir: "/var/lib/muster",
	Handshake: 2 * time.Second,
	Auth:      4 * time.Second,
	Channel:   8 * time.Second,
	Idle:      time.Hour,
	Drain:     500 * time.Millisecond,
	Stop:      5 * time.Second,
	Keepalive: 15 * time.Second,
	JumpIdle:  time.Minute,
	OutputMax: 4096,
}

func TestEveryPhaseOfConnectHasItsOwnDeadline(t *testing.T) {
	forever := func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) }
	for _, test := range []struct {
		name  string
		peer  peer
		after time.Duration
		words string
	}{
		{
			name:  "accepts and never speaks",
			peer:  peer{handle: forever},
			after: phases.Handshake,
			words: "no SSH greeting within 2s of connecting, it said nothing",
		},
		{
			name: "one byte a second, or nearly",
			peer: peer{handle: func(nc net.Conn) {
				go forever(nc)
				for _, b := range []byte("SSH-2.0-slow\r\n") {
					if _, err := nc.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(900 * time.Millisecond)
				}
			}},
			after: phases.Handshake,
			words: `it said "SSH"`,
		},
		{
			name: "greets and never exchanges keys",
			peer: peer{handle: func(nc net.Conn) {
				_, _ = nc.Write([]byte("SSH-2.0-quiet\r\n"))
				forever(nc)
			}},
			after: phases.Handshake,
			words: "key exchange not finished within 2s",
		},
		{
			name: "hangs in the login",
			peer: peer{auth: func(ssh.PublicKey) error {
				time.Sleep(time.Minute)
				return nil
			}},
			after: phases.Auth,
			words: "login not finished within 4s",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, host := test.peer.piped(t, phases)
				start := time.Now()
				_, err := client.Connect(t.Context(), host)
				wantKind(t, err, KindUnreachable, false, test.words)
				took(t, start, test.after)
			})
		})
	}
}

func TestDialHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peer{}
		client, host := p.piped(t, phases)
		client.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}
		start := time.Now()
		_, err := client.Connect(t.Context(), host)
		wantKind(t, err, KindUnreachable, false, "no answer to TCP within 1s")
		took(t, start, phases.TCP)
	})
}

func TestEveryPhaseOfRunHasItsOwnDeadline(t *testing.T) {
	const bound = time.Minute
	hold := func(s *peerSession) { _ = s.conn.Wait() }
	accept := func(s *peerSession) {
		s.accept()
		hold(s)
	}
	for _, test := range []struct {
		name  string
		peer  peer
		cmd   Command
		after time.Duration
		kind  Kind
		sent  bool
		words string
	}{
		{
			name:  "never opens a session",
			peer:  peer{channel: func(ssh.NewChannel) bool { return false }},
			after: phases.Channel,
			kind:  KindUnreachable,
			words: "it did not open a session within 8s",
		},
		{
			name:  "never answers to the command",
			peer:  peer{exec: hold},
			after: phases.Channel,
			kind:  KindLost,
			sent:  true,
			words: "it did not answer to a command within 8s: it is not known whether",
		},
		{
			name:  "never reports an end",
			peer:  peer{exec: accept},
			after: bound + killAfter + phases.Channel + margin,
			kind:  KindLost,
			sent:  true,
			words: "it did not report the end of a command with a bound of 1m0s",
		},
		{
			name:  "is silent for too long",
			peer:  peer{exec: accept},
			cmd:   Command{Idle: 40 * time.Second},
			after: 40 * time.Second,
			kind:  KindLost,
			sent:  true,
			words: "it did not let anything be heard of the command within 40s",
		},
		{
			name:  "takes no input",
			peer:  peer{exec: accept},
			cmd:   Command{Stdin: io.LimitReader(zeros{}, 8<<20), Idle: 40 * time.Second},
			after: 40 * time.Second,
			kind:  KindLost,
			sent:  true,
			words: "not known whether",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, host := test.peer.piped(t, phases)
				conn, err := client.Connect(t.Context(), host)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()

				start := time.Now()
				cmd := test.cmd
				cmd.Shell, cmd.Bound = "sleep 1000", bound
				_, err = conn.Run(t.Context(), cmd)
				wantKind(t, err, test.kind, test.sent, test.words)
				took(t, start, test.after)
			})
		})
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestOutputKeepsASilentConnectionAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peer{exec: func(s *peerSession) {
			s.accept()
			for range 10 {
				time.Sleep(30 * time.Second)
				_, _ = io.WriteString(s.Stderr(), "still here\n")
			}
			s.end("", 0)
		}}
		client, host := p.piped(t, phases)
		conn, err := client.Connect(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		result, err := conn.Run(t.Context(), Command{
			Shell: "make world", Bound: time.Hour, Idle: 40 * time.Second,
		})
		if err != nil || result.Took != 5*time.Minute {
			t.Errorf("got %v after %s, want no error after 5m", err, result.Took)
		}
	})
}

// A child in the background holds the output open long after the command ended.
func TestTheEndOfACommandIsNotTheEndOfItsOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peer{exec: func(s *peerSession) {
			s.accept()
			_, _ = io.WriteString(s, "early\n")
			s.exit(3)
			time.Sleep(time.Minute)
			_, _ = io.WriteString(s, "late\n")
			_ = s.Close()
		}}
		client, host := p.piped(t, phases)
		conn, err := client.Connect(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		start := time.Now()
		result, err := conn.Run(t.Context(), Command{Shell: "daemon &", Bound: time.Minute})
		took(t, start, phases.Drain)
		if err != nil || result.ExitCode != 3 || !result.Open ||
			string(result.Output.Bytes()) != "early\n" {
			t.Errorf("got %+v, %v, want code 3, open, \"early\"", result, err)
		}
	})
}

func TestCancelEndsEveryPhase(t *testing.T) {
	accept := func(s *peerSession) {
		s.accept()
		_ = s.conn.Wait()
	}
	t.Run("connect", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := peer{handle: func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) }}
			client, host := p.piped(t, phases)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := client.Connect(ctx, host)
			wantKind(t, err, KindCancelled, false, "it took longer than it may: the login was not finished yet")
			took(t, start, 300*time.Millisecond)
		})
	})
	t.Run("run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := peer{exec: accept}
			client, host := p.piped(t, phases)
			conn, err := client.Connect(t.Context(), host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()

			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err = conn.Run(ctx, Command{Shell: "true", Bound: time.Minute})
			wantKind(t, err, KindCancelled, true, "it took longer than it may")
			took(t, start, 300*time.Millisecond)

			_, err = conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
			wantKind(t, err, KindUnreachable, false)
			_, err = conn.Run(ctx, Command{Shell: "true", Bound: time.Minute})
			wantKind(t, err, KindCancelled, false)
		})
	})
}

// deaf is a connection whose library never answers a request for a channel, as can happen
// between the moment at which it drops all channels and the end of the connection.
type deaf struct {
	ssh.Conn
	asked, letGo chan struct{}
}

func (d deaf) OpenChannel(string, []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	close(d.asked)
	<-d.letGo
	return nil, nil, io.EOF
}

func TestNobodyWaitsForAChannelOfAConnectionThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deaf{asked: make(chan struct{}), letGo: make(chan struct{})}
		defer close(d.letGo)
		c := &Conn{ssh: d, done: make(chan struct{}), cause: io.ErrUnexpectedEOF}
		go func() {
			<-d.asked
			close(c.done)
		}()
		if _, _, err := c.openChannel("session", nil); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %v, want why the connection ended", err)
		}
	})
}

// A reader that waits for somebody who never comes must not hold up Run.
func TestStdinThatNeverComesDoesNotHoldUpRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peer{exec: func(s *peerSession) {
			time.Sleep(time.Second)
			s.end("", 0)
		}}
		client, host := p.piped(t, phases)
		conn, err := client.Connect(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		never, writer := io.Pipe()
		defer writer.Close()
		start := time.Now()
		_, err = conn.Run(t.Context(), Command{Shell: "true", Stdin: never, Bound: time.Minute})
		if err != nil {
			t.Error(err)
		}
		// Whether the drain is needed depends on who of two is heard first.
		if d := time.Since(start); d < time.Second || d > time.Second+phases.Drain {
			t.Errorf("it took %s, want 1 s, and at most the drain more", d)
		}
	})
}

func TestTheIdleBoundEndsWithItsCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peer{}
		client, host := p.piped(t, phases)
		conn, err := client.Connect(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		for range 3 {
			_, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute, Idle: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestRunOverItsBoundIsATimeout(t *testing.T) {
	for _, test := range []struct {
		name string
		at   time.Duration
		code uint32
		want Kind
	}{
		{"stopped", 60 * time.Second, 124, KindTimeout},
		{"killed", 65 * time.Second, 137, KindTimeout},
		{"the command's own 124", 59 * time.Second, 124, ""},
		{"the command's own code, just in time", 60 * time.Second, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := peer{exec: func(s *peerSession) {
					s.accept()
					time.Sleep(test.at)
					s.end("partial", test.code)
				}}
				client, host := p.piped(t, phases)
				conn, err := client.Connect(t.Context(), host)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()

				result, err := conn.Run(t.Context(), Command{Shell: "x", Bound: time.Minute})
				if KindOf(err) != test.want || result.ExitCode != int(test.code) ||
					string(result.Output.Bytes()) != "partial" {
					t.Errorf("got %+v, %v, want kind %q, code %d and its output",
						result, err, test.want, test.code)
				}
				if test.want != "" && !strings.Contains(err.Error(), "over its bound of 1m0s") {
					t.Errorf("error does not name the bound: %v", err)
				}
			})
		})
	}
}
