package codec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/jobs"
)

// Record is the record of a job that was taken at least once, or has ended. It is stored in a field
// of its task, named ":" and the host. prelude.lua reads and writes the same form.
type Record struct {
	State jobs.State
	taken
	Live                bool // some output of its host was received
	Token               jobs.Token
	counts              // of events in the job's past
	Step                int
	Due, Started        jobs.Micros   // 0: none
	Later               time.Duration // by how much its expiry is later than its task's
	Node, Saved, Cancel string
	Spent               string // a ledger of its time, see jobs.Ledger
	Why                 string // the reason why it was deferred, waits, or is tried again
	End                 end
}

// taken says for what purpose the current attempt was handed out.
type taken struct {
	Lost bool       // to find out how an attempt that was lost has ended
	Was  jobs.State // the job's state if the attempt is released; empty: the job is tried again
}

type counts struct{ Attempt, Tries, Probes, Crashes int }

// end describes the end of a job.
type end struct {
	At        jobs.Micros
	Outcome   jobs.Outcome
	Class     jobs.Class
	Exit, Err string
	Note      string
	Spent     string // a ledger; empty: no worker sent one
	proof
}

// RecordField returns the field of a job's task that holds its record.
func RecordField(host string) string { return ":" + host }

// recordWords is the number of words in the first line of a record. The last of them is the node;
// it may be missing, and so may the two parts behind it: a ledger, and the reason why the job
// waits.
const recordWords = 13

// readTaken reads the word of a record that job.lua calls m.WAS.
func readTaken(word int) taken {
	switch word {
	case 2:
		return taken{Was: jobs.Verify}
	case 3:
		return taken{Was: jobs.Waiting}
	}
	return taken{Lost: word == 1}
}

// ReadRecord reads a record. The record of a job that was never taken is empty.
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

// readEnd reads the last line of a record: time, outcome, class, exit code with a ledger behind a
// plus, and error. A dash stands for a missing word.
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
	spent, proof := cutProof(spent)
	return end{at, jobs.Outcome(words[1]), jobs.Class(words[2]), exit, words[4], note, spent, proof},
		err
}

// ExitCode returns the exit code of a job that ended with one, else nil.
func (e end) ExitCode() *int {
	code, err := strconv.Atoi(e.Exit)
	if err != nil {
		return nil
	}
	return &code
}
