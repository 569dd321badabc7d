package api

import "muster/jobs"

// Message is a notification on its way to one receiver, or past that.
type Message struct {
	ID       string    `json:"id"`
	Receiver string    `json:"receiver"`
	Rule     string    `json:"rule"`
	Whats    []string  `json:"whats"` // kinds of what happened
	State    string    `json:"state"` // waiting, delivered, gone, expired
	Created  jobs.Time `json:"created"`
	Next     jobs.Time `json:"next"` // when it is tried next; null: never
	Tries    int       `json:"tries"`
	At       jobs.Time `json:"at"`              // of the last try; null: there was none
	Error    string    `json:"error,omitempty"` // of the last try
	Title    string    `json:"title"`
	// Body is the message as webhooks get it; only of a single message.
	Body any `json:"body,omitempty"`
}

// MessageList is the answer of GET /v1/notify/messages, the newest first.
type MessageList struct {
	Messages []Message `json:"messages"`
	Next     string    `json:"next,omitempty"` // the next page: before this one; empty: this was the last
}

// NotifyReceiver is somebody who is told.
type NotifyReceiver struct {
	Name    string         `json:"name"`
	Kind    string         `json:"kind"`
	Place   string         `json:"place"` // host or program; never a whole URL
	Rules   []string       `json:"rules"` // that name it
	Counts  map[string]int `json:"counts"`
	Waiting jobs.Time      `json:"waiting"` // since when the oldest message waits; null: none does
}

// NotifyReceivers is the answer of GET /v1/notify/receivers.
type NotifyReceivers struct {
	Receivers []NotifyReceiver `json:"receivers"`
	Complaint string           `json:"complaint,omitempty"` // why a changed file is not in force
}
