package server_test

import (
	"fmt"
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

// Of many zones the page of the queue shows the depth of six, and leads to each of the others.
func TestTheDepthOfSixZonesIsShownAtOnce(t *testing.T) {
	t.Parallel()
	const zones, shown = 8, 6
	list := throng(zones)
	for i := range list {
		list[i].Zone = fmt.Sprintf("zone%d", i)
	}
	w := start(t, setup{inventory: fixed(list)})
	w.submit(run("all"))
	var l api.DepthList
	waitFor(t, "the server has looked at all zones", func() bool {
		if err := w.server.LookAtDepths(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.call("GET", "/v1/queue/depth", nil, &l)
		return len(l.Zones) == zones
	})
	pictures := func(path string) (text string, hidden []string) {
		_, text = w.page(path, nil)
		for _, h := range list {
			if !strings.Contains(text, "The numbers of zone "+h.Zone) {
				hidden = append(hidden, h.Zone)
			}
		}
		if n := strings.Count(text, `class="depth"`); n != shown || len(hidden) != zones-shown {
			t.Errorf("%s has %d pictures, and none of %v", path, n, hidden)
		}
		return text, hidden
	}
	text, hidden := pictures("/queue")
	if !strings.Contains(text, "2 zones more: choose one") {
		t.Errorf("the page does not say that there are more:\n%s", text)
	}
	for _, zone := range hidden {
		if !strings.Contains(text, `href="/queue?depth=`+zone+`#depth"`) {
			t.Errorf("nothing leads to %s:\n%s", zone, text)
		}
		if _, still := pictures("/queue?depth=" + zone); len(still) > 0 && strings.Contains(strings.Join(still, " "), zone) {
			t.Errorf("zone %s is chosen, and not shown", zone)
		}
	}
}
