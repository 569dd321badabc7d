package submit

import (
	"encoding/json"

	"muster/jobs"
)

// writeRan encodes what a task runs, for its record in the hub.
func writeRan(r *jobs.Ran) (string, error) {
	if r == nil {
		return "", nil
	}
	text, err := json.Marshal(r)
	return string(text), err
}

// orderedMax bounds the arguments in an event; the task has all of them.
const orderedMax = 500 // bytes

// ordered returns the event of a submit: who ordered what. A submit that is repeated because it got
// no answer makes the event again.
func ordered(t jobs.Task) jobs.Alert {
	s := t.Spec
	detail := map[string]any{"runbook": s.Runbook, "on": jobs.Brief(s.On, orderedMax),
		"operator": s.Operator, "proven": s.Proven}
	if s.Ran != nil {
		detail["sha256"] = s.Ran.SHA256
		detail["arguments"] = jobs.Brief(s.Ran.Text(), orderedMax)
		if s.Ran.Version != "" {
			detail["version"] = s.Ran.Version
		}
	}
	for name, text := range map[string]string{"reason": s.Reason, "schedule": s.Schedule,
		"retry_of": string(s.RetryOf), "override_freeze": s.Override} {
		if text != "" {
			detail[name] = text
		}
	}
	return jobs.Alert{Event: "submit", Object: string(t.ID), Detail: detail}
}
