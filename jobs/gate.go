package jobs

import (
	"encoding/json"
	"strings"
)

// This file is about steps of kind gate: the job stands until a person says that it goes on.

// GateWord is how a gate was answered. The first word counts, and none takes it back.
type GateWord string

// The words.
const (
	GateOpen   GateWord = "open"   // the job goes on
	GateRefuse GateWord = "refuse" // the step has failed
	GateLate   GateWord = "late"   // said by a worker: nobody had answered in time
)

// GateAnswer is how a gate was answered; without a word it was not yet.
type GateAnswer struct {
	Word GateWord
	At   Micros
	Note string // who and why
}

// ReadGateAnswer reads the form that Redis keeps: µs, word and note, with a blank between.
func ReadGateAnswer(text string) GateAnswer {
	at, rest, _ := strings.Cut(text, " ")
	word, note, _ := strings.Cut(rest, " ")
	m, err := ParseMicros(at)
	if err != nil {
		return GateAnswer{}
	}
	return GateAnswer{Word: GateWord(word), At: m, Note: note}
}

// Gate is the gate at which a job stands.
type Gate struct {
	Step     int    `json:"step"`     // index
	Name     string `json:"name"`     // of the step
	Question string `json:"question"` // may have lines, and hold what a host said
	Since    Time   `json:"since"`
	Until    Time   `json:"until"` // if nobody has answered by then, the step has failed
	// Answer is who opened or refused it, and why, if somebody did: the job has not gone on
	// yet, because it is paused, say.
	Answer string `json:"answer,omitempty"`
}

// GateOf is the gate at which a job stands, by its step and what is kept of it; nil: none.
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

// Answered is what an answer to a gate did.
type Answered struct {
	Job     ID       `json:"job"`
	Step    int      `json:"step"`           // index of the gate
	Name    string   `json:"name,omitempty"` // of the gate; empty if the job has gone on
	Word    GateWord `json:"word"`           // how the gate is answered now
	Note    string   `json:"note"`           // who and why; of one that was answered before, the earlier
	Already bool     `json:"already"`        // it was answered before; nothing was done
}

// Elsewhere is a job that was to be answered and stands at no gate.
type Elsewhere struct {
	Job     ID      `json:"job"`
	State   State   `json:"state"`
	Outcome Outcome `json:"outcome,omitempty"`
	Step    int     `json:"step"` // index
}

// Answers are what an answer to the gates of a task, or of some of its jobs, did.
type Answers struct {
	Task      TaskID      `json:"task"`
	Answered  []Answered  `json:"answered"`
	Elsewhere []Elsewhere `json:"elsewhere"` // of the jobs that were named
	// Stand are jobs of the task that stand at a gate which is not answered: of a task all
	// of whose gates were answered, none.
	Stand []ID `json:"stand"`
	Rest  int  `json:"rest"` // jobs of the task that stand at no gate, and have not ended
}
