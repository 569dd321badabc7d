package fakefleet

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

func TestLogSaysHowCommandsEnded(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	c := r.dial(0)
	for _, command := range []string{"true", "exit 3", "exec timeout 0.01 sleep 9", "exec timeout -s KILL 0.01 sleep 9"} {
		r.exec(c, command, nil)
	}
	want := []Entry{
		{Number: 1, Host: "fw0001", Command: "true"},
		{Number: 2, Host: "fw0001", Command: "exit 3", Exit: 3},
		{Number: 3, Host: "fw0001", Command: "exec timeout 0.01 sleep 9", Exit: 124, TimedOut: true},
		{Number: 4, Host: "fw0001", Command: "exec timeout -s KILL 0.01 sleep 9", Signal: "KILL", TimedOut: true},
	}
	got := r.Log()
	for i := range got {
		if got[i].Running() || got[i].End.Before(got[i].Start) || i > 0 && got[i].Start.Before(got[i-1].End) {
			t.Errorf("the times are wrong: %+v", got[i])
		}
		got[i].Start, got[i].End = want[0].Start, want[0].End
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("log (-want +got)\n%s", d)
	}
	if d := cmp.Diff(Stats{Connections: 1, Logins: 1, Commands: 4, TimedOut: 2}, r.Stats()); d != "" {
		t.Errorf("stats (-want +got)\n%s", d)
	}
}

func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, LogEntries: 2})
	c := r.dial(0)
	for range 5 {
		r.exec(c, "true", nil)
	}
	if n, s := len(r.Log()), r.Stats(); n != 2 || s.Unlogged != 3 || s.Commands != 5 {
		t.Errorf("%d entries, %+v; want 2, and 3 of 5 without an entry", n, s)
	}
}

func TestOneAfterTheOtherIsNoOverlap(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 2})
	c := r.dial(0)
	for range 100 {
		r.exec(c, "true", nil)
	}
	r.launch(c, "sleep 99")
	r.launch(r.dial(1), "sleep 99")
	r.await("runs", started(102))
	if got := r.Overlaps(); len(got) > 0 {
		t.Errorf("overlaps: %+v", got)
	}
}

func TestTwoAtOnceAreOneOverlap(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	r.launch(r.dial(0), "sleep 99")
	r.await("runs", started(1))
	r.exec(r.dial(0), "true", nil)

	got := r.Overlaps()
	if len(got) != 1 || got[0].First.Number != 1 || got[0].Second.Number != 2 ||
		got[0].Host != "fw0001" || !got[0].First.Running() {
		t.Errorf("overlaps: %+v, want one of commands 1 and 2", got)
	}
	r.exec(r.dial(0), "true", nil)
	if n := r.Stats().Overlaps; n != 2 {
		t.Errorf("%d overlaps after a third command, want 2", n)
	}
}

func TestAnOrphanedCommandOverlapsTheNextOne(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*ssh.Client, *ssh.Session){
		"connection closed": func(c *ssh.Client, _ *ssh.Session) { c.Close() },
		"channel closed":    func(_ *ssh.Client, s *ssh.Session) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, Config{Hosts: 1})
			c := r.dial(0)
			leave(c, r.launch(c, untilGo+"; exit 5"))
			r.await("is orphaned", orphaned(1))
			r.exec(r.dial(0), "touch /tmp/go", nil)
			if n := len(r.Overlaps()); n != 1 {
				t.Errorf("%d overlaps while the orphan runs, want 1", n)
			}
			if e := r.await("ended", ended(1)); !e.Orphaned || e.Exit != 5 {
				t.Errorf("the orphan ended as %+v", e)
			}
			r.exec(r.dial(0), "true", nil)
			if n := len(r.Overlaps()); n != 1 {
				t.Errorf("%d overlaps after the orphan ended, want 1", n)
			}
		})
	}
}

func TestAnOrphanIsEndedByItsBound(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	c := r.dial(0)
	r.launch(c, "exec timeout -k 5 0.2 sleep 99")
	c.Close()
	if e := r.await("ended", ended(1)); !e.TimedOut || e.Exit != 124 {
		t.Errorf("the orphan ended as %+v", e)
	}
}

func TestAnOrphanDiesWhenItWrites(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	c := r.dial(0)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("while true; do echo a; done"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if e := r.await("ended", ended(1)); !e.Orphaned || e.Signal != "PIPE" {
		t.Errorf("the orphan ended as %+v", e)
	}
}

func TestTheEndOfALineIsTheEndOfStdin(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	c := r.dial(0)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.StdinPipe(); err != nil { // nobody closes it
		t.Fatal(err)
	}
	if err := s.Start("cat > /tmp/f; " + untilGo + "; exit 4"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	r.await("is orphaned", orphaned(1))
	r.letGo(0)
	if e := r.await("ended", ended(1)); !e.Orphaned || e.Exit != 4 {
		t.Errorf("the upload ended as %+v", e)
	}
}

func TestABlockedWriterIsBoundedToo(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	ch, reqs, err := r.dial(0).OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	go ssh.DiscardRequests(reqs)
	// Nobody reads this: the window and the pipe fill up, and yes waits.
	command := struct{ C string }{"exec timeout 0.2 yes"}
	if _, err := ch.SendRequest("exec", true, ssh.Marshal(command)); err != nil {
		t.Fatal(err)
	}
	if e := r.await("ended", ended(1)); !e.TimedOut || e.Exit != 124 {
		t.Errorf("yes ended as %+v", e)
	}
}

func TestWhatRunsAsideKeepsTheChannelButNotTheStatus(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1})
	ch, reqs, err := r.dial(0).OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	command := struct{ C string }{"(" + untilGo + ") & echo a; exit 3"}
	if _, err := ch.SendRequest("exec", true, ssh.Marshal(command)); err != nil {
		t.Fatal(err)
	}
	if req := <-reqs; req == nil || req.Type != "exit-status" || req.Payload[3] != 3 {
		t.Errorf("got %+v, want the exit status", req)
	}
	if !r.Log()[0].Running() {
		t.Error("the log says that nothing runs any more")
	}
	r.letGo(0)
	if out, err := io.ReadAll(ch); string(out) != "a\n" || err != nil {
		t.Errorf("read %q, %v", out, err)
	}
	if r.Log()[0].Running() {
		t.Error("the channel was closed before the last process had ended")
	}
}
