package read

import (
	"encoding/json"
	"fmt"

	"muster/jobs"
)

// readRan reads the runbook that a task ran; nil if it was not kept.
func readRan(text, traceparent string) (*jobs.Ran, error) {
	if text == "" {
		return nil, nil
	}
	var r jobs.Ran
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("what it runs cannot be read: %w", err)
	}
	r.Trace = traceparent
	return &r, nil
}
