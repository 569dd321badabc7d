package remote

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", sha256.Size)
	for _, test := range []struct {
		text string
		have int64 // -1: it is no answer
	}{
		{"same", 0}, {"no", 0}, {"have 0 -", 0}, {"have 17 " + sum, 17},
		{"", -1}, {"done", -1}, {"same ", 0}, {"same x", -1}, {"have", -1}, {"have 0", -1},
		{"have 0 " + sum, -1}, {"have 17 -", -1}, {"have 17 " + sum[2:], -1}, {"have -1 " + sum, -1},
		{"have 017 " + sum, 17}, {"have 99999999999999999999 " + sum, -1}, {"have  17 " + sum, -1},
	} {
		a, ok := parseAnswer(test.text)
		if ok != (test.have >= 0) || ok && a.have != test.have {
			t.Errorf("%q gives %+v, %t", test.text, a, ok)
		}
	}
}

// talk plays the host's part.
func talk(t *testing.T, text []byte, said string) (told string, sent []Progress, err error) {
	t.Helper()
	u := Upload{Size: int64(len(text)), Content: bytes.NewReader(text),
		Progress: func(p Progress) { sent = append(sent, p) }}
	d := newDialog(u, "N")
	fmt.Fprint(d, said)
	all, err := io.ReadAll(struct{ io.Reader }{d}) // it is content with reads of nothing
	d.end()
	return string(all), sent, err
}

func TestDialog(t *testing.T) {
	t.Parallel()
	text := []byte("hello, host")
	sum := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
	for _, test := range []struct {
		name, said, told string
		last             Progress
	}{
		{"nothing is there", "N have 0 -\n", "0\nhello, host", Progress{11, 0, 11}},
		{"noise before", "Welcome!\nNN have 5 x\n" + strings.Repeat("N ", 500) + "\nN have 0 -\n",
			"0\nhello, host", Progress{11, 0, 11}},
		{"a part", "N have 5 " + sum("hello") + "\n", "5\n, host", Progress{11, 5, 6}},
		{"all but the name", "N have 11 " + sum("hello, host") + "\n", "11\n", Progress{11, 11, 0}},
		{"a wrong part", "N have 5 " + sum("hallo") + "\n", "0\nhello, host", Progress{11, 0, 11}},
		{"more than there is", "N have 12 " + sum("hello, host") + "\n", "0\nhello, host",
			Progress{11, 0, 11}},
		{"it is there", "N same\nN done\n", "", Progress{11, 11, 0}},
		{"it cannot", "N no\nsorry\n", "", Progress{}},
		{"the first counts", "N no\nN have 0 -\n", "", Progress{}},
	} {
		told, sent, err := talk(t, text, test.said)
		var last Progress
		if len(sent) > 0 {
			last = sent[len(sent)-1]
		}
		if told != test.told || err != nil || last != test.last {
			t.Errorf("%s: told %q, %+v, %v, want %q, %+v", test.name, told, last, err, test.told, test.last)
		}
	}
}

// The end of the dialog frees a reader that waits for an answer.
func TestDialogThatIsOver(t *testing.T) {
	t.Parallel()
	d := newDialog(Upload{Content: strings.NewReader("x"), Size: 1}, "N")
	read := make(chan error)
	go func() {
		_, err := d.Read(make([]byte, 9))
		read <- err
	}()
	fmt.Fprint(d, "N hav")
	d.end()
	if err := <-read; !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

// Whatever a host says, it gets the content from some byte on, or nothing.
func FuzzDialog(f *testing.F) {
	text := []byte("hello, host")
	f.Add("N have 5 " + fmt.Sprintf("%x", sha256.Sum256([]byte("hello"))) + "\n")
	f.Add("N same\n")
	f.Fuzz(func(t *testing.T, said string) {
		told, _, err := talk(t, text, said+"\nN no\n")
		line, rest, found := strings.Cut(told, "\n")
		if err != nil || told != "" && (!found || !strings.HasSuffix(string(text), rest) ||
			fmt.Sprint(len(text)-len(rest)) != line) {
			t.Errorf("told %q, %v", told, err)
		}
	})
}

// A login shell that does nothing and says that all is well has taken no file.
func TestUploadToAHostThatOnlySaysYes(t *testing.T) {
	t.Parallel()
	p := &peer{exec: func(s *peerSession) { s.end("Welcome!\n", 0) }}
	err := connect(t, p.listen(t)).Upload(t.Context(), Upload{Path: "/x", Size: 1, Bound: time.Minute,
		Content: strings.NewReader("x")})
	if KindOf(err) != KindFailed || !strings.Contains(err.Error(), `something else; the host said: "Welcome!"`) {
		t.Errorf("got %v", err)
	}
}
