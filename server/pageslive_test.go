package server_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/jobs"
)

// TestABigTaskIsLiveWithinASecond measures how long an open page of a task takes to hear of an end.
func TestABigTaskIsLiveWithinASecond(t *testing.T) {
	t.Parallel()
	w := start(t, bigWorld(t, 5000))
	task := string(w.submit(run("all")).Task)
	req, err := http.NewRequestWithContext(t.Context(), "GET", w.url+"/live?at=/tasks/"+task, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 4<<20)
	step := jobs.Step{Node: "n1", Slot: "1", Want: 1}
	var ended time.Time
	rounds, slowest := 0, time.Duration(0)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var p struct{ ID, HTML string }
		if !ok || json.Unmarshal([]byte(data), &p) != nil || p.ID != "state" {
			continue
		}
		if !ended.IsZero() {
			slowest = max(slowest, time.Since(ended))
		}
		if rounds++; rounds == 6 {
			break
		}
		for range 2 { // take a job, then end it
			step.Request += "x"
			reply, err := w.queue.Step(t.Context(), "default", step)
			if err != nil {
				t.Fatal(err)
			}
			step.Results = nil
			for _, g := range reply.Jobs {
				r := succeed("")
				r.Job, r.Token, r.Kind = g.Job, g.Token, jobs.KindEnd
				step.Results = append(step.Results, r)
			}
		}
		ended = time.Now()
	}
	t.Logf("the slowest of %d changes came after %s", rounds-1, slowest.Round(time.Millisecond))
	// The log has the figure. The bound is wide, because a busy machine does much else.
	if rounds < 6 || slowest > time.Minute {
		t.Errorf("%d changes came, the slowest after %s, want 5 soon", rounds-1, slowest)
	}
}
