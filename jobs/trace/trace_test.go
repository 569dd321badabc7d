package trace_test

import (
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/trace"
)

const given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestATraceparentIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	c, err := trace.Parse(given)
	if err != nil || c.String() != given || !c.Sampled {
		t.Fatalf("%q is %+v, %q, %v", given, c, c, err)
	}
	later := "01" + given[2:] + "-more"
	if c, err := trace.Parse(later); err != nil || c.String() != given {
		t.Errorf("%q of a later version is %q, %v; want %q", later, c, err, given)
	}
	if c, err := trace.Parse(given[:53] + "00"); err != nil || c.Sampled {
		t.Errorf("a caller that keeps nothing: %+v, %v", c, err)
	}
}

func TestWhatIsNoTraceparentIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "00", strings.ToUpper(given), given + "-more", given[:54],
		"ff" + given[2:], "01" + given[2:] + "x", strings.Replace(given, "4bf9", "4bg9", 1),
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"0x" + given[2:], strings.ReplaceAll(given, "-", "_"), given[:53] + "0\n",
		"01" + given[2:] + "-" + strings.Repeat("a", 500)} {
		if c, err := trace.Parse(text); err == nil || c != (trace.Context{}) {
			t.Errorf("%q is read as %+v, %v", text, c, err)
		} else if len(err.Error()) > 400 {
			t.Errorf("the error repeats all %d bytes", len(text))
		}
	}
}

// The names are in logs and collectors for years: they must stay.
func TestTheNamesOfTracesStay(t *testing.T) {
	t.Parallel()
	const task = jobs.TaskID("0wcy7y2fb2")
	if got := trace.OfJob(jobs.NewID(task, "fw001")).String(); got != wantJob {
		t.Errorf("the trace of a job is %s, and was %s", got, wantJob)
	}
	own := trace.Submit(task, "")
	if got := own.String(); got != wantSubmit {
		t.Errorf("the submit is %s, and was %s", got, wantSubmit)
	}
	c := trace.Submit(task, given)
	if c.Trace.String() != given[3:35] || c.Span != own.Span || !c.Sampled {
		t.Errorf("the submit of a caller with a trace is %s", c)
	}
	if c := trace.Submit(task, "a word in Redis"); c != own {
		t.Errorf("a wrong traceparent makes the submit %s; want %s", c, own)
	}
}

const (
	wantJob    = "4b94ea96d3ef8fee447825f8d77261aa"
	wantSubmit = "00-071e4660aad09c8223e50111aedbd780-5b288b858d5ebe25-00"
)

func TestOneTaskInNIsPicked(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	picked := 0
	const tasks, n = 20_000, 20
	for i := range tasks {
		id := jobs.NewTaskID(now.Add(time.Duration(i)*time.Second), uint16(i*7919))
		if trace.IsPicked(id, n) {
			picked++
		}
		if !trace.IsPicked(id, 1) || trace.IsPicked(id, 0) {
			t.Fatalf("task %s: 1 in 1 is all, 1 in 0 is none", id)
		}
	}
	if want := tasks / n; picked < want*8/10 || picked > want*12/10 {
		t.Errorf("%d of %d tasks are picked; want about %d", picked, tasks, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(given)
	f.Add("01" + given[2:] + "-x")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := trace.Parse(text)
		if err != nil {
			return
		}
		again, err := trace.Parse(c.String())
		if err != nil || again != c {
			t.Errorf("%q is %q, which is %+v, %v", text, c, again, err)
		}
	})
}
