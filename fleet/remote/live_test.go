package remote

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// witness is a writer that tests wait for.
type witness struct {
	mu   sync.Mutex
	all  bytes.Buffer
	news chan struct{} // holds an item when something came
}

func (h *witness) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all.Write(p)
	select {
	case h.news <- struct{}{}:
	default:
	}
	return 0, io.ErrClosedPipe // which is nobody's business
}

func (h *witness) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.String()
}

// await waits until something ends with the words.
func (h *witness) await(words string) {
	for !strings.HasSuffix(h.text(), words) {
		<-h.news
	}
}

func TestOutputIsHeardWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	ear := &witness{news: make(chan struct{}, 1)}
	p := &peer{exec: func(s *peerSession) {
		s.accept()
		_, _ = io.WriteString(s, "first\n")
		ear.await("first\n") // the command has not ended
		_, _ = io.WriteString(s.Stderr(), "second\n")
		ear.await("second\n")
		s.end("third", 3)
	}}
	c := connect(t, p.listen(t))
	r, err := c.Run(t.Context(), Command{Shell: "x", Bound: time.Minute, Live: ear})
	if err != nil || r.ExitCode != 3 {
		t.Fatalf("exit %d, %v", r.ExitCode, err)
	}
	if want := "first\nsecond\nthird"; ear.text() != want || string(r.Output.Bytes()) != want {
		t.Errorf("heard %q, kept %q, want %q", ear.text(), r.Output.Bytes(), want)
	}
}

// Skip notes what is lost.
func (h *witness) Skip(n int64) { fmt.Fprintf(h, "(%d lost)", n) }

// Live receives the dropped bytes too, and nothing that comes after the end.
func TestLiveHearsWhatIsCounted(t *testing.T) {
	t.Parallel()
	r, ear := newRecorder(4, func() {}), &witness{news: make(chan struct{}, 1)}
	for _, write := range []func(){
		func() { r.Write([]byte("before ")) },
		func() { r.watch(ear) },
		func() { r.Write([]byte("all of this ")) },
		func() { r.skip(7) },
		func() { r.watch(nil) },
		func() { r.Write([]byte("nobody ")) },
		func() { r.watch(ear) },
		func() { r.Write([]byte("and this")) },
		func() { r.seal() },
		func() { r.Write([]byte("late")) },
	} {
		write()
	}
	if got := ear.text(); got != "all of this (7 lost)and this" {
		t.Errorf("heard %q", got)
	}
}
