package server_test

import (
	"strings"
	"testing"

	"muster/api"
)

// The page of the queue shows how deep it was, with its numbers, and since when the server looks;
// whoever does not see a zone gets nothing of it.
func TestTheQueueShowsItsDepthOverTime(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	w.submit(run("fw-a1,fw-b1"))
	admin := w.token("admin")
	var l api.DepthList
	waitFor(t, "the server has looked at the zone", func() bool {
		if err := w.server.LookAtDepths(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.callAs("GET", "/v1/queue/depth", admin, &l)
		return len(l.Zones) == 1
	})
	z := l.Zones[0]
	if last := z.Samples[len(z.Samples)-1]; z.Zone != "default" || last.Queued != 2 || last.Due != 2 || l.Since.IsZero() {
		t.Errorf("%+v", l)
	}
	_, text := w.page("/queue", bearing(admin))
	for _, want := range []string{`class="depth"`, "at most 2 jobs queued and 2 due", "The numbers of zone default",
		"what was before is not known here"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	var none api.DepthList
	one := w.token("operator-acme")
	w.callAs("GET", "/v1/queue/depth", one, &none)
	if len(none.Zones) != 0 {
		t.Errorf("who sees acme only: %+v", none)
	}
	if res, text := w.page("/queue", bearing(one)); res.StatusCode != 200 ||
		strings.Contains(text, `class="depth"`) {
		t.Errorf("who sees acme only: %s\n%s", res.Status, text)
	}
}
