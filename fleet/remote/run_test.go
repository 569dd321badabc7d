package remote

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func TestRunReportsHowACommandEnded(t *testing.T) {
	signal := func(name string) func(*peerSession) {
		return func(s *peerSession) {
			s.accept()
			_, _ = s.SendRequest("exit-signal", false, ssh.Marshal(struct {
				Signal string
				Core   bool
				Text   string
				Lang   string
			}{Signal: name}))
			_ = s.Close()
		}
	}
	for _, test := range []struct {
		name   string
		exec   func(*peerSession)
		code   int
		signal string
		output string
		kind   Kind
		words  string
	}{
		{name: "0", exec: func(s *peerSession) { s.end("fine\n", 0) }, output: "fine\n"},
		{name: "7", exec: func(s *peerSession) { s.end("", 7) }, code: 7},
		{name: "signal", exec: signal("KILL"), code: 137, signal: "KILL"},
		{name: "signal with a bad name", exec: signal("\x1b[2J"), code: 128, signal: `"\x1b[2J"`},
		{
			name: "exit status before the output",
			exec: func(s *peerSession) {
				s.accept()
				s.exit(1)
				_, _ = io.WriteString(s, "late, but in time\n")
				_ = s.Close()
			},
			code: 1, output: "late, but in time\n",
		},
		{
			name: "the first exit status counts",
			exec: func(s *peerSession) {
				s.accept()
				s.exit(5)
				s.exit(0)
				_ = s.Close()
			},
			code: 5,
		},
		{
			name: "no exit status",
			exec: func(s *peerSession) {
				s.accept()
				_, _ = io.WriteString(s, "half")
				_ = s.Close()
			},
			code: -1, output: "half", kind: KindLost, words: "ended without an exit status",
		},
		{
			name: "a malformed exit status",
			exec: func(s *peerSession) {
				s.accept()
				_, _ = s.SendRequest("exit-status", false, []byte{0})
				_ = s.Close()
			},
			code: -1, kind: KindLost, words: "ended without an exit status",
		},
		{
			name: "the line is cut",
			exec: func(s *peerSession) {
				s.accept()
				_ = s.conn.Close()
			},
			code: -1, kind: KindLost, words: "the connection ended: ",
		},
		{
			name: "the command is refused",
			exec: func(s *peerSession) { _ = s.req.Reply(false, nil) },
			code: -1, kind: KindRefused, words: "refuses to run a command",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := peer{exec: test.exec}
			conn := connect(t, p.listen(t))
			result, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
			if result.ExitCode != test.code || result.Signal != test.signal {
				t.Errorf("code %d, signal %q, want %d, %q",
					result.ExitCode, result.Signal, test.code, test.signal)
			}
			if got := string(result.Output.Bytes()); got != test.output {
				t.Errorf("output %q, want %q", got, test.output)
			}
			if test.kind != "" {
				wantKind(t, err, test.kind, test.kind == KindLost, test.words)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRunKeepsBothStreamsAndAllBytes(t *testing.T) {
	t.Parallel()
	p := peer{exec: func(s *peerSession) {
		s.accept()
		_, _ = s.Stderr().Write([]byte("\xff\xfe\x00\x1b[31m"))
		s.end("", 0)
	}}
	conn := connect(t, p.listen(t))
	result, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
	if err != nil || string(result.Output.Bytes()) != "\xff\xfe\x00\x1b[31m" {
		t.Errorf("got %q, %v, want the bytes as they came", result.Output.Bytes(), err)
	}
}

// The flood has no line end, comes on both streams at once and, with a key
// exchange each 2 MB, through several sets of keys.
func TestAFloodIsDrainedAndBounded(t *testing.T) {
	t.Parallel()
	half := int64(50 << 20)
	if testing.Short() {
		half = 5 << 20
	}
	p := peer{rekey: 2 << 20, exec: func(s *peerSession) {
		s.accept()
		var streams sync.WaitGroup
		streams.Go(func() { _, _ = io.CopyN(s, zeros{}, half) })
		streams.Go(func() { _, _ = io.CopyN(s.Stderr(), zeros{}, half) })
		streams.Wait()
		s.end("", 0)
	}}
	conn := connect(t, p.listen(t))
	result, err := conn.Run(t.Context(), Command{Shell: "yes", Bound: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	out := result.Output
	if out.Size() != 2*half {
		t.Errorf("%d bytes were counted, want %d", out.Size(), 2*half)
	}
	if kept := len(out.Head) + len(out.Tail); kept != Default().OutputMax {
		t.Errorf("%d bytes were kept, want %d", kept, Default().OutputMax)
	}
	if !bytes.Contains(out.Bytes(), []byte("\n… "+ByteCount(out.Omitted)+" left out …\n")) {
		t.Error("the output does not say what was left out")
	}
}

func TestStdinArrivesAndEnds(t *testing.T) {
	t.Parallel()
	p := peer{exec: func(s *peerSession) {
		s.accept()
		got, _ := io.ReadAll(s)
		s.end(string(got), 0)
	}}
	conn := connect(t, p.listen(t))
	for _, stdin := range []io.Reader{nil, strings.NewReader("a\x00b\n")} {
		want := ""
		if stdin != nil {
			want = "a\x00b\n"
		}
		result, err := conn.Run(t.Context(), Command{Shell: "cat", Stdin: stdin, Bound: time.Minute})
		if err != nil || string(result.Output.Bytes()) != want {
			t.Errorf("got %q, %v, want %q", result.Output.Bytes(), err, want)
		}
	}
}

// The window of the peer is full, and it never takes a byte: the end of the
// command must free the writer.
func TestACommandMayEndWithoutReadingItsInput(t *testing.T) {
	t.Parallel()
	p := peer{exec: func(s *peerSession) { s.end("no thanks", 2) }}
	conn := connect(t, p.listen(t))
	result, err := conn.Run(t.Context(), Command{
		Shell: "false", Stdin: io.LimitReader(zeros{}, 64<<20), Bound: time.Minute,
	})
	if err != nil || result.ExitCode != 2 {
		t.Errorf("got %+v, %v, want code 2", result, err)
	}
}

func TestStdinThatCannotBeReadIsSaid(t *testing.T) {
	t.Parallel()
	p := peer{exec: func(s *peerSession) {
		s.accept()
		_, _ = io.Copy(io.Discard, s)
		s.end("", 0)
	}}
	conn := connect(t, p.listen(t))
	stdin := io.MultiReader(strings.NewReader("half"), brokenReader{})
	result, err := conn.Run(t.Context(), Command{Shell: "cat", Stdin: stdin, Bound: time.Minute})
	wantKind(t, err, KindNode, true, "the input of the command could not be read", "disk on fire")
	if result.ExitCode != 0 {
		t.Errorf("code %d, want 0: the command did end", result.ExitCode)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

// A host may ask and open what it likes; it is refused and disturbs nothing.
func TestUnsolicitedRequestsAndChannelsAreRefused(t *testing.T) {
	t.Parallel()
	asked := make(chan error, 1)
	p := peer{login: func(conn *ssh.ServerConn) {
		asked <- func() error {
			for range 100 {
				if _, _, err := conn.SendRequest("hostkeys-00@openssh.com", false, nil); err != nil {
					return err
				}
				ok, _, err := conn.SendRequest("give-me-all", true, []byte("payload"))
				if err != nil || ok {
					return errors.Join(errors.New("a global request was not refused"), err)
				}
				var refused *ssh.OpenChannelError
				_, _, err = conn.OpenChannel("auth-agent@openssh.com", nil)
				if !errors.As(err, &refused) || refused.Reason != ssh.Prohibited {
					return errors.Join(errors.New("a channel was not refused"), err)
				}
			}
			return nil
		}()
	}, exec: func(s *peerSession) {
		s.accept()
		ok, err := s.SendRequest("give-me-more", true, nil)
		if ok || err != nil {
			s.end("a channel request was not refused", 1)
			return
		}
		s.end("", 0)
	}}
	conn := connect(t, p.listen(t))
	if err := <-asked; err != nil {
		t.Error(err)
	}
	result, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
	if err != nil || result.ExitCode != 0 {
		t.Errorf("got %q, code %d, %v", result.Output.Bytes(), result.ExitCode, err)
	}
}

func TestSessionsThatAreNotOpenedAreExplained(t *testing.T) {
	t.Parallel()
	for reason, kind := range map[ssh.RejectionReason]Kind{
		ssh.ConnectionFailed:   KindThrottled, // what OpenSSH says at MaxSessions
		ssh.ResourceShortage:   KindThrottled,
		ssh.Prohibited:         KindRefused,
		ssh.UnknownChannelType: KindRefused,
	} {
		p := peer{channel: func(opened ssh.NewChannel) bool {
			_ = opened.Reject(reason, "open failed")
			return false
		}}
		conn := connect(t, p.listen(t))
		_, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
		wantKind(t, err, kind, false, "open failed")
	}
}

func TestCloseEndsRunningCommands(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	p := peer{exec: func(s *peerSession) {
		s.accept()
		close(started)
		_ = s.conn.Wait()
	}}
	conn := connect(t, p.listen(t))
	var run sync.WaitGroup
	run.Go(func() {
		_, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
		wantKind(t, err, KindLost, true, "the connection was closed")
	})
	<-started
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(conn.slots) != sessionsMax {
		t.Error("Close did not wait for the session")
	}
	run.Wait()
	_, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
	wantKind(t, err, KindUnreachable, false, "the connection was closed")
}

func TestACommandThatMakesNoSenseIsNotSent(t *testing.T) {
	t.Parallel()
	p := peer{exec: func(s *peerSession) { t.Error("it was sent") }}
	conn := connect(t, p.listen(t))
	for _, test := range []struct {
		cmd   Command
		words string
	}{
		{Command{Bound: time.Minute}, "is empty"},
		{Command{Shell: " \n", Bound: time.Minute}, "is empty"},
		{Command{Shell: "a\x00b", Bound: time.Minute}, "NUL byte at 1"},
		{Command{Shell: "true"}, "bound = 0s"},
		{Command{Shell: "true", Bound: -1}, "bound = -1ns"},
		{Command{Shell: "true", Bound: 1, Idle: -1}, "idle = -1ns"},
		{Command{Shell: strings.Repeat("x", lineMax), Bound: 1}, "upload it as a file"},
	} {
		_, err := conn.Run(t.Context(), test.cmd)
		wantKind(t, err, KindInvalid, false, test.words)
	}
}
