package jobs

import (
	"encoding/json"
	"strings"
)

// This file handles steps of kind gate: the job waits until a person opens or refuses the gate.

// GateWord is the answer to a gate. The first answer counts, and cannot be changed.
type GateWord string

// The words.
const (
	GateOpen   GateWord = "open"   // the job continues
	GateRefuse GateWord = "refuse" // the step has failed
	GateLate   GateWord = "late"   // from a worker: nobody answered in time
)

// GateAnswer is the answer to a gate; without a word there is none yet.
type GateAnswer struct {
	Word  GateWord
	At    Micros
	Note  string // who and why
	Proof string // a signature of it; empty: none is known
}

// ReadGateAnswer reads the form in Redis: µs, word and note, with a blank between.
func ReadGateAnswer(text string) GateAnswer {
	at, rest, _ := strings.Cut(text, " ")
	word, note, _ := strings.Cut(rest, " ")
	m, err := ParseMicros(at)
	if err != nil {
		return GateAnswer{}
	}
	return GateAnswer{Word: GateWord(word), At: m, Note: note}
}

// Gate is the gate at which a job waits.
type Gate struct {
	Step     int    `json:"step"`     // index of the step
	Name     string `json:"name"`     // name of the step
	Question string `json:"question"` // may have several lines, and contain output of a host
	Since    Time   `json:"since"`
	Until    Time   `json:"until"` // the step fails if nobody has answered by then
	// Answer says who opened or refused the gate, and why, if the job has not continued yet, for
	// example because it is paused.
	Answer string `json:"answer,omitempty"`
}

// GateOf returns the gate at which a job waits, by its step and its saved data; or nil.
func GateOf(step int, saved string) *Gate {
	var kept struct {
		Probe struct {
			Since Micros `json:"since"`
			Until Micros `json:"until"`
			Gate  *struct {
				Name     string `json:"name"`
				Question string `json:"question"`
			} `json:"gate"`
		} `json:"probe"`
	}
	if saved == "" || json.Unmarshal([]byte(saved), &kept) != nil || kept.Probe.Gate == nil {
		return nil
	}
	p := kept.Probe
	return &Gate{Step: step, Name: p.Gate.Name, Question: p.Gate.Question, Since: TimeOf(p.Since),
		Until: TimeOf(p.Until)}
}

// Answered is the effect of an answer to a gate.
type Answered struct {
	Job     ID       `json:"job"`
	Step    int      `json:"step"`           // index of the gate's step
	Name    string   `json:"name,omitempty"` // name of the gate; empty if the job has continued
	Word    GateWord `json:"word"`           // the answer in force
	Note    string   `json:"note"`           // who and why, of the answer in force
	Already bool     `json:"already"`        // it was answered before; nothing changed
}

// Elsewhere is a job that an operator named for an answer, and that waits at no gate.
type Elsewhere struct {
	Job     ID      `json:"job"`
	State   State   `json:"state"`
	Outcome Outcome `json:"outcome,omitempty"`
	Step    int     `json:"step"` // index of its step
}

// Answers is the effect of an answer to the gates of a task, or of some of its jobs.
type Answers struct {
	Task      TaskID      `json:"task"`
	Answered  []Answered  `json:"answered"`
	Elsewhere []Elsewhere `json:"elsewhere"` // jobs that were named and wait at no gate
	// Stand are jobs of the task that wait at a gate without an answer. There are none if the answer
	// was for all gates of the task.
	Stand []ID `json:"stand"`
	Rest  int  `json:"rest"` // jobs of the task that wait at no gate, and have not ended
}
