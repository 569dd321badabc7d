package history

import (
	"fmt"
	"strings"

	"muster/api"
	"muster/jobs"
)

// Batch is a part of a zone's event stream, with the tasks and jobs in it as Redis knew them.
type Batch struct {
	Zone    string
	After   string // where it begins: the position in the store
	Last    string // where it ends
	Entries int64  // of the stream up to there, counted by Redis; -1: not known
	Events  []jobs.Happening
	Tasks   []jobs.TaskInfo
	Ended   []api.PastJob
	Outputs map[jobs.ID]jobs.Output // of their hosts
	Gap     *api.Gap                // a gap that was found before it

	// Contradicted is called for each job that is stored with another outcome; it may be nil.
	Contradicted func(Contradiction)
}

// Needs lists the questions to Redis that must be answered to store some events.
type Needs struct {
	Tasks []jobs.TaskID    // tasks that were submitted, changed or ended
	Ended []jobs.Happening // the end of each job that has ended
	Over  []jobs.TaskID    // the tasks that have ended in this zone
}

// NeedsOf returns the needs of some events.
func NeedsOf(events []jobs.Happening) Needs {
	var n Needs
	tasks, ended := map[jobs.TaskID]bool{}, map[string]int{}
	for _, h := range events {
		id, job := TaskOf(h.Object), strings.Contains(h.Object, ":")
		switch {
		case id == "":
			continue
		case job && h.Event == "end" && recalled(h):
			continue
		case job && (h.Event == "end" || h.Event == settle):
			if at, again := ended[h.Object]; again {
				n.Ended[at] = h
				continue
			}
			ended[h.Object] = len(n.Ended)
			n.Ended = append(n.Ended, h)
		case !job && h.Event == "task":
			n.Over = append(n.Over, id)
		case job:
			continue
		}
		if !tasks[id] {
			tasks[id] = true
			n.Tasks = append(n.Tasks, id)
		}
	}
	return n
}

// settle is the event of a job that had ended unknown, and whose outcome is known now.
const settle = "settle"

// recalled reports whether the event repeats an end that Redis had forgotten and history knew.
func recalled(h jobs.Happening) bool {
	m, _ := h.Detail.(map[string]any)
	return m["recalled"] == true
}

// TaskOf returns the task of an event's object; empty if the object has none.
func TaskOf(object string) jobs.TaskID {
	task, _, _ := strings.Cut(object, ":")
	if id, err := jobs.ParseTaskID(task); err == nil {
		return id
	}
	return ""
}

// EndOf returns a job by its last event, for a job that Redis has forgotten: it lacks the time
// when the job began, and the class of its failure.
func EndOf(h jobs.Happening) jobs.JobInfo {
	id := jobs.ID(h.Object)
	j := jobs.JobInfo{ID: id, Host: id.Host(), State: jobs.Ended, Finished: h.At,
		Outcome: jobs.Outcome(word(h.Detail, "outcome")), Error: word(h.Detail, "error"),
		Aside: jobs.Aside{Note: word(h.Detail, "how")}}
	if code, ok := count(h.Detail, "exit"); ok {
		n := int(code)
		j.ExitCode = &n
	}
	if at, ok := count(h.Detail, "ended"); ok { // a settled job ended before the event
		j.Finished = jobs.TimeOf(jobs.Micros(at))
	}
	return j
}

func word(detail any, name string) string {
	m, _ := detail.(map[string]any)
	text, _ := m[name].(string)
	return text
}

func count(detail any, name string) (int64, bool) {
	m, _ := detail.(map[string]any)
	n, ok := m[name].(float64)
	return int64(n), ok
}

// rows holds the rows of a batch for the tables of attempts and steps.
type rows struct {
	begun, ended, steps [][]any
	// left are ends of attempts whose numbers only the table knows.
	left []attemptEnd
}

type attemptEnd struct {
	job jobs.ID
	at  jobs.Micros
	how string
	no  int64
}

// attemptsOf follows the attempts of each job through a batch. The event that ends an attempt does
// not hold its number: the number follows from the take before it or after it.
func attemptsOf(b Batch) rows {
	f := follower{current: map[jobs.ID]int64{}, open: map[jobs.ID]attemptEnd{},
		begun: map[string]int{}, ended: map[string]int{}}
	final := make(map[jobs.ID]int64, len(b.Ended))
	for _, j := range b.Ended {
		final[j.ID] = int64(j.Attempt)
	}
	for _, h := range b.Events {
		if !strings.Contains(h.Object, ":") || TaskOf(h.Object) == "" || recalled(h) {
			continue
		}
		f.hear(h, final)
	}
	for _, e := range f.open {
		f.left = append(f.left, e)
	}
	return f.rows
}

type follower struct {
	rows
	current      map[jobs.ID]int64 // the running attempt, if the batch has its take
	open         map[jobs.ID]attemptEnd
	begun, ended map[string]int // key to row
}

func (f *follower) hear(h jobs.Happening, final map[jobs.ID]int64) {
	id, at := jobs.ID(h.Object), jobs.MicrosOf(h.At.Time)
	switch h.Event {
	case "take":
		no, _ := count(h.Detail, "attempt")
		if no < 1 {
			return // not an event as muster writes it
		}
		if e, ok := f.open[id]; ok {
			// A deferred or returned attempt does not count.
			e.no = no - 1
			if e.how == "defer" || e.how == "back" {
				e.no = no
			}
			f.end(e)
			delete(f.open, id)
		}
		f.current[id] = no
		put(&f.rows.begun, f.begun, attemptKey(id, no), []any{string(id.Task()), id.Host(), no,
			word(h.Detail, "node"), int64(at), int64(0), ""})
	case "step":
		step, _ := count(h.Detail, "step")
		f.steps = append(f.steps, []any{string(id.Task()), id.Host(), step, int64(at)})
	case "retry", "wait", "verify", "defer", "back", "lost", "end", settle:
		e := attemptEnd{job: id, at: at, how: h.Event, no: f.current[id]}
		if ended, ok := count(h.Detail, "ended"); ok && h.Event == settle {
			e.at = jobs.Micros(ended)
		}
		if h.Event == "end" || h.Event == settle {
			e.how = word(h.Detail, "outcome")
			if no := final[id]; no > 0 {
				e.no = no
			} else if e.no == 0 {
				return // the job never ran
			}
		}
		delete(f.current, id)
		if e.no == 0 {
			f.open[id] = e
			return
		}
		f.end(e)
	}
}

func (f *follower) end(e attemptEnd) {
	if e.no < 1 {
		return
	}
	if i, ok := f.begun[attemptKey(e.job, e.no)]; ok {
		row := f.rows.begun[i]
		row[5], row[6] = int64(e.at), e.how
		return
	}
	put(&f.rows.ended, f.ended, attemptKey(e.job, e.no), []any{string(e.job.Task()), e.job.Host(),
		e.no, "", int64(0), int64(e.at), e.how})
}

func attemptKey(id jobs.ID, no int64) string { return fmt.Sprint(id, " ", no) }

// put keeps only the last row of each key, because a statement must not meet the same row twice.
func put(list *[][]any, at map[string]int, key string, row []any) {
	if i, ok := at[key]; ok {
		(*list)[i] = row
		return
	}
	at[key] = len(*list)
	*list = append(*list, row)
}
