package blobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/jobs"
	"muster/jobs/queue/keys"
)

const (
	chunkBytes = 512 << 10 // of a stored content in one key
	chunksPipe = 4         // chunks in one round trip
	blobsMost  = 10_000    // stored contents

	// putTime bounds the time for a content to arrive. Then the chunks of an incomplete one expire.
	putTime = 24 * time.Hour
)

// blobEntry is the entry of a content in the list, also while the content is still arriving.
type blobEntry struct {
	ID     string      `json:"id"` // of its chunks
	Size   int64       `json:"size"`
	Chunks int         `json:"chunks"`
	Name   string      `json:"name,omitempty"`
	By     string      `json:"by,omitempty"`
	At     jobs.Micros `json:"at,omitempty"`

	text string // the entry as it was read
	used jobs.Micros
	gone bool // it is being removed
}

// reserved begins the names of contents that are still arriving.
const reserved = "~"

func (e blobEntry) chunk(n int) string {
	return keys.Hub("blob:", e.ID+":"+strconv.Itoa(n))
}

func (e blobEntry) info(sum string) jobs.Blob {
	return jobs.Blob{SHA256: sum, Size: e.Size, Name: e.Name, By: e.By, At: jobs.TimeOf(e.At),
		Used: jobs.TimeOf(e.used), Tasks: []jobs.TaskID{}}
}

func parseBlobEntry(text string) (blobEntry, error) {
	used, rest, _ := strings.Cut(text, " ")
	e := blobEntry{text: text, gone: used == "-"}
	err := json.Unmarshal([]byte(rest), &e)
	if err == nil && !e.gone {
		e.used, err = jobs.ParseMicros(used)
	}
	if err == nil && (e.ID == "" || e.Size < 0 || e.Chunks != chunksOf(e.Size)) {
		err = errors.New("it contradicts itself")
	}
	if err != nil {
		return e, fmt.Errorf("list of blobs: entry %.100q: %w", text, err)
	}
	return e, nil
}

func chunksOf(size int64) int { return int((size + chunkBytes - 1) / chunkBytes) }
