package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/jobs"
)

// Output of a killed worker appears only once although the attempt that takes its step over
// receives it again: for a follower, and for a later reader; and the host folds with one that has
// the same output.
func TestWhatWasHeardOfALostAttemptIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRecording(t, 2)
	if err := os.WriteFile(filepath.Join(r.homes[0], "slow"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := r.submit("all", "echo one; if [ -e ~/slow ]; then printf mid; until [ -e ~/go ]; do "+
		"sleep .1; done; else printf mid; fi; echo two")
	slow := jobs.NewID(id, "fw1")
	r.awaitSaid(slow, "one\nmid")
	followed, raw := make(chan string), make(chan string)
	go func() { out, _ := r.muster("logs", "-f", string(slow)); followed <- out }()
	go func() { out, _ := r.muster("logs", "-f", "--raw", string(id)); raw <- out }()
	r.signal(syscall.SIGKILL)
	mark := "== attached to what an earlier attempt started ==\n"
	r.awaitSaid(slow, "one\nmid\n"+mark)
	if err := os.WriteFile(filepath.Join(r.homes[0], "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantOutcomes(t, r.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 2})
	want := "one\nmid\n" + mark + "two\n"
	if out := <-followed; out != want {
		t.Errorf("who followed heard %q, want %q", out, want)
	}
	for name, out := range map[string]string{"-f --raw": <-raw, "--raw": r.says("logs", "--raw", string(id))} {
		if own := linesOf(out, "fw1: "); own != want {
			t.Errorf("logs %s has %q, want %q", name, own, want)
		}
	}
	if out := r.says("logs", string(slow)); out != want {
		t.Errorf("the log in the end is %q, want %q", out, want)
	}
	out := r.says("logs", "--fold", string(id))
	if strings.Count(out, "midtwo") != 1 || strings.Contains(out, "attached") {
		t.Errorf("they do not fold:\n%s", out)
	}
}

func (r *recording) says(args ...string) string {
	r.t.Helper()
	out, _ := r.muster(args...)
	return out
}

// awaitSaid waits until exactly this output of a job was received.
func (r *recording) awaitSaid(id jobs.ID, want string) {
	r.t.Helper()
	late := r.late()
	for tick := time.Tick(50 * time.Millisecond); ; {
		got := ""
		if res, err := r.get("/v1/jobs/" + string(id) + "/output"); err == nil {
			got = readAll(r.t, res)
		}
		if got == want {
			return
		}
		select {
		case <-tick:
		case <-late:
			r.t.Fatalf("%s said %q, want %q; the master says:\n%s", id, got, want, r.master.log)
		}
	}
}

func readAll(t testing.TB, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// linesOf returns the lines behind a prefix.
func linesOf(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if own, ok := strings.CutPrefix(line, prefix); ok {
			b.WriteString(own)
		}
	}
	return b.String()
}
