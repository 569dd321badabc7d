package jobs

import "errors"

// Blob is a stored content, as people see it.
type Blob struct {
	SHA256 string   `json:"sha256"` // in hex: its name
	Size   int64    `json:"size"`   // bytes
	Name   string   `json:"name"`   // that of the file it came from, for people
	By     string   `json:"by"`     // who put it there
	At     Time     `json:"at"`     // when
	Used   Time     `json:"used"`   // when it was last put or a task asked for it
	Tasks  []TaskID `json:"tasks"`  // that need it
}

// The errors of stored contents. Neither goes away by itself.
var (
	// ErrNoBlob is wrapped when a content is not there, or not all of it.
	ErrNoBlob = errors.New("the blob is not there")

	// ErrBadBlob is wrapped when a content is not what its name says.
	ErrBadBlob = errors.New("the content is not what its sha256 says")
)
