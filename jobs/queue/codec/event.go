package codec

import (
	"encoding/json"

	"muster/jobs"
)

// HubEventsMax bounds the stream of the hub, in entries: what people order there
// is little, and is to be found for years.
const HubEventsMax = 100_000

// EventLine returns an event as the streams have it: one word, an object without blanks, and
// the details as JSON.
func EventLine(e jobs.Alert) (string, error) {
	detail, err := json.Marshal(e.Detail)
	return e.Event + " " + e.Object + " " + string(detail), err
}

// ZoneEventsMax bounds the stream of a zone, as in prelude.lua.
const ZoneEventsMax = 1_000_000
