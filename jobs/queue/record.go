package queue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/jobs"
)

// record is what is kept of a job that was taken once, or ended: a field of its
// task, ":" and its host. prelude.lua writes and reads the same.
type record struct {
	state jobs.State
	taken
	live                bool // somebody heard what its host said
	token               jobs.Token
	counts              // of the job's past
	step                int
	due, started        jobs.Micros   // 0: none
	later               time.Duration // by how much later than its task it expires
	node, saved, cancel string
	spent               string // a ledger of its time, see jobs.Ledger
	why                 string // it was deferred, waits, or is tried again
	end                 end
}

// taken is what the attempt in hand was handed out for.
type taken struct {
	lost bool       // to find out about one that was lost
	was  jobs.State // what the job is again if it is given back; empty: it is tried again
}

type counts struct{ attempt, tries, probes, crashes int }

// end is how a job ended.
type end struct {
	at        jobs.Micros
	outcome   jobs.Outcome
	class     jobs.Class
	exit, err string
	note      string
	spent     string // a ledger; empty: no worker said so
}

// recordField is the field of a job's task that has its record.
func recordField(host string) string { return ":" + host }

// recordWords is how many words the first line of a record has; the last one is
// the node, and may be missing, and so may be what stands behind it: a ledger, and
// why the job waits.
const recordWords = 13

// readTaken reads the word of a record that job.lua has as m.WAS.
func readTaken(word int) taken {
	switch word {
	case 2:
		return taken{was: jobs.Verify}
	case 3:
		return taken{was: jobs.Waiting}
	}
	return taken{lost: word == 1}
}

// readRecord reads a record; that of a job that was never taken is empty.
func readRecord(text string) (record, error) {
	if text == "" {
		return record{}, nil
	}
	lines := strings.SplitN(text, "\n", 4)
	words := strings.SplitN(lines[0], " ", recordWords)
	if len(lines) != 4 || len(words) != recordWords {
		return record{}, fmt.Errorf("record of a job: %q: want four lines, and %d words in the first",
			text, recordWords)
	}
	r := reader{}
	for _, w := range words {
		r.v = append(r.v, w)
	}
	out := record{state: jobs.State(r.text()), taken: readTaken(r.int()), live: r.int() == 1,
		token:  jobs.Token(r.micros()),
		counts: counts{attempt: r.int(), tries: r.int(), probes: r.int(), crashes: r.int()},
		step:   r.int(), due: r.micros(), later: r.duration(), started: r.micros(),
		saved: lines[1], cancel: lines[2]}
	var beside string
	out.node, beside, _ = strings.Cut(r.text(), " ")
	out.spent, out.why, _ = strings.Cut(beside, " ")
	if out.spent == "-" {
		out.spent = ""
	}
	if r.err == nil && lines[3] != "" {
		out.end, r.err = readEnd(lines[3])
	}
	if r.err != nil {
		return record{}, fmt.Errorf("record of a job: %q: %w", text, r.err)
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

// exitCode is the exit code of a job that ended with one.
func (e end) exitCode() *int {
	code, err := strconv.Atoi(e.exit)
	if err != nil {
		return nil
	}
	return &code
}
