package codec

import (
	"encoding/json"

	"muster/jobs"
)

// HubEventsMax bounds the stream of the hub, in entries: people give few orders there, and must be
// able to find them for years.
const HubEventsMax = 100_000

// EventLine returns an event in the form of the streams: one word, an object without blanks, and
// the details as JSON.
func EventLine(e jobs.Alert) (string, error) {
	detail, err := json.Marshal(e.Detail)
	return e.Event + " " + e.Object + " " + string(detail), err
}

// ZoneEventsMax bounds the stream of a zone; prelude.lua has the same number.
const ZoneEventsMax = 1_000_000
