package jobs

// Answer is the result of asking a host how a job ended, in a word.
type Answer string

// The answers. Only after AnswerSettled and AnswerKnown the end of the job is known.
const (
	AnswerSettled     Answer = "settled"     // the record has the outcome, now the job's
	AnswerKnown       Answer = "known"       // the outcome was settled before
	AnswerRunning     Answer = "running"     // the job still runs on the host
	AnswerGone        Answer = "gone"        // no process is left, and no end recorded
	AnswerUntold      Answer = "untold"      // the host has no record of the job
	AnswerLater       Answer = "later"       // the record is of a later attempt
	AnswerUnreachable Answer = "unreachable" // the host could not be reached
	AnswerBusy        Answer = "busy"        // another job runs there; the host can answer later
	AnswerNobody      Answer = "nobody"      // no worker has looked
	AnswerDoubt       Answer = "doubt"       // the record leaves it open, or could not be read
)

// Ask is an order to ask a host how a job with outcome unknown ended.
type Ask struct {
	At       Time   `json:"at"`
	Note     string `json:"note"`             // who ordered it, and why
	Answered Time   `json:"answered"`         // null: no worker has looked yet
	Answer   Answer `json:"answer,omitempty"` // the answer
	Words    string `json:"words,omitempty"`  // the answer in a sentence, for people
}

// AskOrdered is the effect of an order to ask about a job.
type AskOrdered struct {
	Job     ID   `json:"job"`
	Already bool `json:"already"` // an earlier order is not answered yet
	// Known is the outcome of a job that needs no question; empty: its outcome is unknown.
	Known Outcome `json:"known,omitempty"`
}

// Reading is the result of a worker's search for the record of a job.
type Reading struct {
	Job    ID
	Token  Token // token of the order
	Answer Answer
	Words  string
	Began  Token // token of the attempt that began the step, by the host's record; 0: there is none
	Over   bool  // no process of the step runs on the host any more

	// End holds the end of the job, if that is known now. Only the fields of an end count.
	End *Result
}
