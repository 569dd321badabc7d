package api

import "muster/jobs"

// Review is one time at which somebody broke the glass: they ran alone what more people must sign.
type Review struct {
	Task   jobs.TaskID `json:"task"`
	Who    string      `json:"who"` // broke the glass
	At     jobs.Time   `json:"at"`
	Reason string      `json:"reason"`
	// By, Closed and Words are of the other person who has looked at it; empty: nobody has yet.
	By     string    `json:"by,omitempty"`
	Closed jobs.Time `json:"closed"` // null: it is open
	Words  string    `json:"words,omitempty"`
}

// ReviewList is the answer of GET /v1/reviews, the newest first.
type ReviewList struct {
	Reviews []Review `json:"reviews"`
}

// ReviewRequest is the body of POST /v1/reviews/{task}.
type ReviewRequest struct {
	Words string `json:"words" maxLength:"500"` // what was looked at and found
	As    string `json:"as,omitempty"`
}
