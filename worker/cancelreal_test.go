package worker

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/testkit/sshtest"
	"muster/worker/verdict"
)

// onWord closes a channel when a word was written to it.
type onWord struct {
	word string
	said chan struct{}
	once sync.Once
	all  bytes.Buffer
}

// Write takes output.
func (w *onWord) Write(p []byte) (int, error) {
	if w.all.Write(p); strings.Contains(w.all.String(), w.word) {
		w.once.Do(func() { close(w.said) })
	}
	return len(p), nil
}

// A real command gets the signal to stop and ends the connection, so nobody sees its end. The job
// says once that nobody knows whether the command still runs, and why.
func TestAFailedCancelSaysOneThingOnce(t *testing.T) {
	t.Parallel()
	host := sshtest.StartSSHD(t, sshtest.Options{}).Host
	host.Fence = fleet.FenceNone
	client, err := remote.New(remote.Default())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.Connect(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	heard := &onWord{word: "begun", said: make(chan struct{})}
	_, err = conn.Run(t.Context(), remote.Command{Bound: time.Minute, Stop: heard.said, Live: heard, Shell: `
		p=$PPID
		while ! grep -q '^sshd' /proc/$p/comm; do read -r _ _ _ p _ < /proc/$p/stat; done
		trap "kill -KILL $p" TERM
		echo begun
		sleep 60 & wait`})
	if remote.KindOf(err) != remote.KindLost {
		t.Fatalf("got %v, want a command of which nothing is known", err)
	}
	r, _ := verdict.Judge(verdict.Evidence{
		Steps: 1, Action: scripts.Action{Kind: scripts.KindRun, Name: "s"},
		Err: err, Order: &verdict.StopOrder{Note: "bob: wrong ruleset"}}, 0)
	const begins = "cancel requested, not known whether it still runs: bob: wrong ruleset; "
	if r.Outcome != jobs.Unknown || !strings.HasPrefix(r.Error, begins+"the connection ended") ||
		strings.Count(r.Error, "not known") != 1 || strings.Contains(r.Error, "told to stop") {
		t.Errorf("%s: %s\nof: %v", r.Outcome, r.Error, err)
	}
}
