package codec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/jobs"
)

// Record is what is kept of a job that was taken once, or ended: a field of its
// task, ":" and its host. prelude.lua writes and reads the same.
type Record struct {
	State jobs.State
	taken
	Live                bool // somebody heard what its host said
	Token               jobs.Token
	counts              // of the job's past
	Step                int
	Due, Started        jobs.Micros   // 0: none
	Later               time.Duration // by how much later than its task it expires
	Node, Saved, Cancel string
	Spent               string // a ledger of its time, see jobs.Ledger
	Why                 string // it was deferred, waits, or is tried again
	End                 end
}

// taken is what the attempt in hand was handed out for.
type taken struct {
	Lost bool       // to find out about one that was lost
	Was  jobs.State // what the job is again if it is given back; empty: it is tried again
}

type counts struct{ Attempt, Tries, Probes, Crashes int }

// end is how a job ended.
type end struct {
	At        jobs.Micros
	Outcome   jobs.Outcome
	Class     jobs.Class
	Exit, Err string
	Note      string
	Spent     string // a ledger; empty: no worker said so
}

// RecordField is the field of a job's task that has its record.
func RecordField(host string) string { return ":" + host }

// recordWords is how many words the first line of a record has; the last one is
// the node, and may be missing, and so may be what stands behind it: a ledger, and
// why the job waits.
const recordWords = 13

// readTaken reads the word of a record that job.lua has as m.WAS.
func readTaken(word int) taken {
	switch word {
	case 2:
		return taken{Was: jobs.Verify}
	case 3:
		return taken{Was: jobs.Waiting}
	}
	return taken{Lost: word == 1}
}

// ReadRecord reads a record; that of a job that was never taken is empty.
func ReadRecord(text string) (Record, error) {
	if text == "" {
		return Record{}, nil
	}
	lines := strings.SplitN(text, "\n", 4)
	words := strings.SplitN(lines[0], " ", recordWords)
	if len(lines) != 4 || len(words) != recordWords {
		return Record{}, fmt.Errorf("record of a job: %q: want four lines, and %d words in the first",
			text, recordWords)
	}
	r := Reader{}
	for _, w := range words {
		r.Left = append(r.Left, w)
	}
	out := Record{State: jobs.State(r.Text()), taken: readTaken(r.Int()), Live: r.Int() == 1,
		Token:  jobs.Token(r.Micros()),
		counts: counts{Attempt: r.Int(), Tries: r.Int(), Probes: r.Int(), Crashes: r.Int()},
		Step:   r.Int(), Due: r.Micros(), Later: r.Duration(), Started: r.Micros(),
		Saved: lines[1], Cancel: lines[2]}
	var beside string
	out.Node, beside, _ = strings.Cut(r.Text(), " ")
	out.Spent, out.Why, _ = strings.Cut(beside, " ")
	if out.Spent == "-" {
		out.Spent = ""
	}
	if r.Err == nil && lines[3] != "" {
		out.End, r.Err = readEnd(lines[3])
	}
	if r.Err != nil {
		return Record{}, fmt.Errorf("record of a job: %q: %w", text, r.Err)
	}
	return out, nil
}

// readEnd reads the last line of a record: when, outcome, class, exit code with a ledger
// behind a plus, and error. A word that is missing is a dash.
func readEnd(line string) (e end, err error) {
	line, note, _ := strings.Cut(line, "\n")
	words := strings.SplitN(line, " ", 5)
	if len(words) != 5 {
		return e, errors.New("the last line lacks words")
	}
	for i, w := range words[:3] {
		if w == "-" {
			words[i] = ""
		}
	}
	at, err := jobs.ParseMicros(words[0])
	exit, spent, _ := strings.Cut(words[3], "+")
	if exit == "-" {
		exit = ""
	}
	return end{at, jobs.Outcome(words[1]), jobs.Class(words[2]), exit, words[4], note, spent}, err
}

// ExitCode is the exit code of a job that ended with one.
func (e end) ExitCode() *int {
	code, err := strconv.Atoi(e.Exit)
	if err != nil {
		return nil
	}
	return &code
}
