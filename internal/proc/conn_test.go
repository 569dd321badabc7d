package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// pair returns two ends of a conversation in one process.
func pair(t testing.TB) (*Conn, *Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*Conn
	for i, fd := range fds {
		if ends[i], err = newConn(os.NewFile(uintptr(fd), "end"), nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

func TestConnSendsAtTheSameTime(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	const senders, each = 8, 50
	var sending sync.WaitGroup
	for i := range senders {
		sending.Go(func() {
			for k := range each {
				// Some frames are larger than what the socket takes at once.
				if err := a.Send(strings.Repeat(fmt.Sprint(i), 1+k*k*10)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	total := 0
	for range senders * each {
		s := receive[string](t, b)
		if strings.Trim(s, s[:1]) != "" {
			t.Fatal("two frames are mixed")
		}
		total += len(s)
	}
	sending.Wait()
	want := 0
	for k := range each {
		want += senders * (1 + k*k*10)
	}
	if total != want {
		t.Errorf("received %d bytes, want %d", total, want)
	}
}

func TestConnEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		raw  string
		want error
	}{
		{"between messages", "1\n", io.EOF},
		{"in a message", "1\n{\"a\":", io.ErrUnexpectedEOF},
		{"with a last word", "1\n2", io.ErrUnexpectedEOF},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a, b := pair(t)
			if err := b.Send("never read"); err != nil { // then the end is a reset, not an EOF
				t.Fatal(err)
			}
			if _, err := a.c.Write([]byte(test.raw)); err != nil {
				t.Fatal(err)
			}
			a.Close()
			if got := receive[int](t, b); got != 1 {
				t.Errorf("received %d, want 1", got)
			}
			var v any
			if err := b.Receive(&v); !errors.Is(err, test.want) {
				t.Errorf("at the end: %v, want %v", err, test.want)
			}
		})
	}
}

func TestConnBound(t *testing.T) {
	t.Parallel()
	const bound = 100_000
	a, b := pair(t)
	a.max, b.max = bound, bound
	big := strings.Repeat("x", bound)
	if err := a.Send(big); err == nil || !strings.Contains(err.Error(), "at most 100000") {
		t.Errorf("sent too much: %v, want the bound", err)
	}
	if err := a.Send("small"); err != nil {
		t.Errorf("after a message that is too long: %v, want nothing to be broken", err)
	}
	receive[string](t, b)

	var writing sync.WaitGroup
	writing.Go(func() { io.Copy(a.c, io.MultiReader(strings.NewReader(big), strings.NewReader(big))) })
	var v any
	if err := b.Receive(&v); err == nil || !strings.Contains(err.Error(), "more than 100000") {
		t.Errorf("received a line without end: %v, want the bound", err)
	}
	b.Close()
	writing.Wait()
}

func TestConnNonsense(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	if _, err := a.c.Write([]byte("hello\n\n[1\n7\n")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var v any
		if err := b.Receive(&v); err == nil || !strings.Contains(err.Error(), "receive") {
			t.Errorf("received %v, %v, want an error", v, err)
		}
	}
	if got := receive[int](t, b); got != 7 {
		t.Errorf("received %d, want 7", got)
	}
}

func TestConnDetachKeepsWhatIsUnread(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	if _, err := a.c.Write([]byte("1\n2\n3")); err != nil {
		t.Fatal(err)
	}
	if got := receive[int](t, b); got != 1 { // reads 2 and 3, too
		t.Fatalf("received %d, want 1", got)
	}
	f, unread, err := b.detach()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("2\n3", string(unread)); diff != "" {
		t.Error(diff)
	}
	if err := b.Send(1); !errors.Is(err, ErrDetached) {
		t.Errorf("send after detach: %v, want ErrDetached", err)
	}
	next, err := newConn(f, unread)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if _, err := a.c.Write([]byte("4\n")); err != nil {
		t.Fatal(err)
	}
	if got := []int{receive[int](t, next), receive[int](t, next)}; !slices.Equal(got, []int{2, 34}) {
		t.Errorf("received %v, want 2 and 34", got)
	}
}

func TestConnDetachEndsReceive(t *testing.T) {
	t.Parallel()
	_, b := pair(t)
	left := make(chan error)
	go func() {
		var v any
		left <- b.Receive(&v)
	}()
	f, _, err := b.detach()
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := <-left; !errors.Is(err, ErrDetached) {
		t.Errorf("receive: %v, want ErrDetached", err)
	}
}

func FuzzConn(f *testing.F) {
	f.Add([]byte("1\n\"a\"\n"), 1)
	f.Add([]byte("{\"jobs\":[\n\n"), 3)
	f.Add([]byte("\x00\xff\n]"), 2)
	f.Fuzz(func(t *testing.T, raw []byte, cut int) {
		a, b := pair(t)
		cut = min(max(cut, 0), len(raw))
		go func() {
			a.c.Write(raw[:cut])
			a.c.Write(raw[cut:])
			a.Close()
		}()
		frames := 0
		for {
			var v any
			err := b.Receive(&v)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			frames++
		}
		if want := strings.Count(string(raw), "\n"); frames != want {
			t.Errorf("%d frames in %q, want %d", frames, raw, want)
		}
	})
}
