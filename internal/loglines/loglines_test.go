package loglines_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"muster/internal/loglines"
	"muster/jobs"
	"muster/jobs/trace"
)

func TestALineAboutAJobHasItsTraceOnce(t *testing.T) {
	t.Parallel()
	id := jobs.ID("0wcy7y2fb2:fw001")
	want := trace.OfJob(id).String()
	for name, write := range map[string]func(hclog.Logger){
		"a line":       func(l hclog.Logger) { l.Info("it ended", "task", id.Task(), "job", id) },
		"a text":       func(l hclog.Logger) { l.Warn("it ended", "job", string(id)) },
		"by its level": func(l hclog.Logger) { l.Log(hclog.Error, "it ended", "job", id) },
		"an attempt":   func(l hclog.Logger) { l.With("job", id, "attempt", 2).Named("x").Debug("a step") },
		"twice":        func(l hclog.Logger) { l.With("job", id).With("step", 1).Error("it ended", "job", id) },
	} {
		var b bytes.Buffer
		write(loglines.WithTraces(hclog.New(&hclog.LoggerOptions{Output: &b, JSONFormat: true, Level: hclog.Trace})))
		var line map[string]any
		if err := json.Unmarshal(b.Bytes(), &line); err != nil || line["trace"] != want ||
			strings.Count(b.String(), want) != 1 {
			t.Errorf("%s: %s, %v", name, b.String(), err)
		}
	}
	for name, args := range map[string][]any{"nothing": nil, "no job": {"task", id.Task()}, "a key alone": {"job"},
		"no id": {"job", "a cron job"}, "another kind": {"job", 7}} {
		var b bytes.Buffer
		loglines.WithTraces(hclog.New(&hclog.LoggerOptions{Output: &b})).Info("words", args...)
		if strings.Contains(b.String(), "trace=") {
			t.Errorf("%s: %s", name, b.String())
		}
	}
}
