package jobs

// Answer is in a word what came of asking a host how a job ended.
type Answer string

// The answers. Only AnswerSettled and AnswerKnown tell how the job ended.
const (
	AnswerSettled     Answer = "settled"     // the record said how, and the job's end is that now
	AnswerKnown       Answer = "known"       // somebody else had settled it
	AnswerRunning     Answer = "running"     // it is at work on the host
	AnswerGone        Answer = "gone"        // nothing of it is alive, and its end was not seen
	AnswerUntold      Answer = "untold"      // the host has no record that could tell
	AnswerLater       Answer = "later"       // the record is of an attempt behind the one that ended
	AnswerUnreachable Answer = "unreachable" // the host could not be asked
	AnswerBusy        Answer = "busy"        // another job is at work there, and it can tell later
	AnswerNobody      Answer = "nobody"      // no worker has looked
	AnswerDoubt       Answer = "doubt"       // the record leaves it open, or could not be read
)

// Ask is an order to ask a host how a job ended that ended unknown.
type Ask struct {
	At       Time   `json:"at"`
	Note     string `json:"note"`             // who ordered it, and why
	Answered Time   `json:"answered"`         // null: nobody has looked yet
	Answer   Answer `json:"answer,omitempty"` // how it was answered
	Words    string `json:"words,omitempty"`  // the same for people
}

// AskOrdered is what became of the order to ask about a job.
type AskOrdered struct {
	Job     ID   `json:"job"`
	Already bool `json:"already"` // it was ordered before, and is not answered yet
	// Known is how the job ended where nothing is to be asked; empty: it ended unknown.
	Known Outcome `json:"known,omitempty"`
}

// Reading is what a worker found that looked for the record of a job.
type Reading struct {
	Job    ID
	Token  Token // of the order
	Answer Answer
	Words  string
	Began  Token // of the attempt that began the step, as the host says it; 0: it does not
	Over   bool  // nothing of the step is at work on the host any more

	// End is how the job ended, if that is known now: of its fields those of an end count.
	End *Result
}
