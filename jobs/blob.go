package jobs

import "errors"

// Blob describes a stored content to people.
type Blob struct {
	SHA256 string   `json:"sha256"` // its name, in hex
	Size   int64    `json:"size"`   // in bytes
	Name   string   `json:"name"`   // name of the file with this content, for people
	By     string   `json:"by"`     // who stored it
	At     Time     `json:"at"`     // when it was stored
	Used   Time     `json:"used"`   // when it was last stored, or last needed by a task
	Tasks  []TaskID `json:"tasks"`  // tasks that need it
}

// The errors of stored contents. A retry does not help against either.
var (
	// ErrNoBlob is wrapped if a content, or a part of it, is not there.
	ErrNoBlob = errors.New("the blob is not there")

	// ErrBadBlob is wrapped if a content does not match the sha256 that is its name.
	ErrBadBlob = errors.New("the content is not what its sha256 says")
)
