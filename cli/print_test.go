package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"muster/jobs"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                                  "0.0s",
		40 * time.Millisecond:              "0.0s",
		8140 * time.Millisecond:            "8.1s",
		9949 * time.Millisecond:            "9.9s",
		9950 * time.Millisecond:            "10s",
		59499 * time.Millisecond:           "59s",
		59500 * time.Millisecond:           "1m00s",
		65 * time.Second:                   "1m05s",
		time.Hour - 501*time.Millisecond:   "59m59s",
		time.Hour - time.Millisecond:       "1h00m",
		2*time.Hour + 3*time.Minute:        "2h03m",
		24*time.Hour - time.Second:         "1d00h",
		50 * time.Hour:                     "2d02h",
		Seconds(math.NaN()):                "0.0s",
		Seconds(-3):                        "0.0s",
		Seconds(math.Inf(1)).Round(1 << 8): "24855d03h",
	} {
		if got := Span(d); got != want {
			t.Errorf("span(%d) = %s, want %s", d, got, want)
		}
	}
}

func TestTimesForPeople(t *testing.T) {
	t.Parallel()
	start := jobs.Time{Time: time.Date(2026, 11, 21, 11, 0, 0, 0, time.FixedZone("CET", 3600))}
	end := jobs.Time{Time: start.Add(90 * time.Second)}
	now := start.Add(10 * time.Second)
	for _, c := range []struct{ got, want string }{
		{Moment(start), "2026-11-21 10:00:00Z"},
		{Moment(jobs.Time{}), "-"},
		{Ago(start, now), "10s ago"},
		{Ago(end, now), "0.0s ago"}, // clocks differ
		{Ago(jobs.Time{}, now), "-"},
		{Took(start, end, now), "1m30s"},
		{Took(start, jobs.Time{}, now), "10s"},
		{Took(end, start, now), "0.0s"},
		{Took(jobs.Time{}, end, now), "-"},
		{Count(1, "host"), "1 host"},
		{Count(0, "host"), "0 hosts"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// hostile is output with which a host attacks a terminal.
const hostile = "a\x1b]0;title\x07\x1b[31mred\r\u202eabc\u200bd\u0085e\xff\x7f\n\tf 消防 ok"

func TestHostileWordsAreHarmless(t *testing.T) {
	t.Parallel()
	const want = `a\x1b]0;title\x07\x1b[31mred\x0d\u202eabc\u200bd\u0085e\xff\x7f\n f 消防 ok`
	if diff := cmp.Diff(want, Cell(hostile)); diff != "" {
		t.Errorf("cell (-want +got):\n%s", diff)
	}
}

func TestJSONIsHarmlessAndTheSame(t *testing.T) {
	t.Parallel()
	value := map[string]string{"said": strings.ToValidUTF8(hostile, "?") + "\U000e0041 <&>"}
	got, err := Encode(value, "  ")
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(got, "\x1b\x07\r\u202e\u200b\u0085\x7f\U000e0041") {
		t.Errorf("harmful: %q", got)
	}
	for _, part := range []string{"消防 ok", "<&>", `\u202e`, `\udb40\udc41`, `\u007f`} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in %s", part, got)
		}
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(got), &back); err != nil || back["said"] != value["said"] {
		t.Errorf("read back as %q, %v, want %q", back, err, value)
	}
}

func FuzzEscapeJSON(f *testing.F) {
	f.Add(hostile)
	f.Add("\U0010ffff\ud7ff")
	f.Fuzz(func(t *testing.T, text string) {
		whole, err := json.Marshal(text)
		if err != nil {
			t.Skip()
		}
		safe := EscapeJSON(whole)
		var want, got string
		if json.Unmarshal(whole, &want) != nil || json.Unmarshal([]byte(safe), &got) != nil || want != got {
			t.Errorf("%q became %s", text, safe)
		}
	})
}

func TestGrid(t *testing.T) {
	t.Parallel()
	g := NewGrid("HOST", ">EXIT", "ERROR")
	g.Add("fw001", "0", "-")
	g.Add("消防署", "127", Palette(true).Paint(Red, "not found"))
	g.Add("x", "1", "a long story that has no end")
	for _, c := range []struct {
		name     string
		width    int
		headings bool
		want     string
	}{
		{"as wide as it is", 0, true, "" +
			"HOST    EXIT  ERROR\n" +
			"fw001      0  -\n" +
			"消防署   127  \x1b[31mnot found\x1b[0m\n" +
			"x          1  a long story that has no end\n"},
		{"narrow", 24, true, "" +
			"HOST    EXIT  ERROR\n" +
			"fw001      0  -\n" +
			"消防署   127  \x1b[31mnot found\x1b[0m\n" +
			"x          1  a long st…\n"},
		{"without headings", 0, false, "" +
			"fw001     0  -\n" +
			"消防署  127  \x1b[31mnot found\x1b[0m\n" +
			"x         1  a long story that has no end\n"},
	} {
		if diff := cmp.Diff(c.want, g.Render(c.width, c.headings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestDetailsLeaveOutWhatIsEmpty(t *testing.T) {
	t.Parallel()
	got := Details([2]string{"job", "a"}, [2]string{"exit code", "1"}, [2]string{"long name that is empty", ""})
	if want := "job        a\nexit code  1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestListShowsEmptyListsToo(t *testing.T) {
	t.Parallel()
	var out, words bytes.Buffer
	s := &Screen{Out: &out, Err: &words}
	if err := s.List([]int{}, NewGrid("A"), "there is nothing"); err != nil || out.Len() > 0 ||
		words.String() != "there is nothing\n" {
		t.Errorf("table: %q, %q, %v", out.String(), words.String(), err)
	}
	s.JSON = true
	if err := s.List([]int{}, NewGrid("A"), "there is nothing"); err != nil || out.String() != "[]\n" {
		t.Errorf("JSON: %q, %v", out.String(), err)
	}
}

func TestScreenOfAPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	c := &cobra.Command{}
	c.SetOut(w)
	c.SetErr(&bytes.Buffer{})
	s := NewScreen(c)
	if s.OutTerm || s.ErrTerm || bool(s.Colours) || s.Width() != 0 || s.TableWidth() != 0 {
		t.Errorf("a pipe was taken for a terminal: %+v", s)
	}
}

func TestResultThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := (&Screen{Out: full}).WriteJSON(1); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("error %v, want one about space", err)
	}
}

func TestColoursOnlyIfAsked(t *testing.T) {
	t.Parallel()
	for _, o := range jobs.Outcomes() {
		if got := Palette(false).Outcome(o, "x"); got != "x" {
			t.Errorf("%s without colours: %q", o, got)
		}
		if got := Palette(true).Outcome(o, "x"); text.StringWidthWithoutEscSequences(got) != 1 || got == "x" {
			t.Errorf("%s with colours: %q", o, got)
		}
	}
}
