package main

import (
	"io"
	"strings"
	"testing"

	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/redistest"
)

func TestAJobIsHeardWhileItRuns(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newHouse(t, inventory)
	h.master()
	id := jobs.NewID(h.submit("fw0001", "echo begun; sleep 300"), "fw0001")
	res, err := h.get("/v1/jobs/" + string(id) + "/output?wait=1m")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if string(said) != "begun\n" || err != nil || res.Header.Get("Muster-Ended") != "false" {
		t.Errorf("heard %q, ended: %s, %v", said, res.Header.Get("Muster-Ended"), err)
	}
	h.awaitJob(id, jobs.Running)
	h.muster("cancel", string(id), "--reason", "enough")
	h.wait(id.Task())
	if out, _ := h.muster("logs", string(id)); out != "begun\n" {
		t.Errorf("in the end the log is %q", out)
	}
}

// 100 MB cost Redis no more than any other output, and the log says what is missing.
func TestAFloodIsBoundedOnItsWay(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 1,
		Personality: func(int) fakefleet.Personality { return fakefleet.Flood }})
	h := newHouse(t, inventory)
	h.master()
	id := jobs.NewID(h.submit("fw0001", "echo end"), "fw0001")
	h.wait(id.Task())
	out, _ := h.muster("logs", string(id))
	if !strings.Contains(out, "\n… 105 MB left out …\n") || !strings.HasSuffix(out, "end\n") || len(out) > 66<<10 {
		t.Errorf("%d bytes, the end is %q", len(out), out[max(len(out)-100, 0):])
	}
	if n := redistest.BytesReceived(t, h.redis); n > 4<<20 {
		t.Errorf("Redis has received %d bytes", n)
	}
}
