package server_test

import (
	"regexp"
	"strings"
	"testing"
)

var orderLink = regexp.MustCompile(`order</span> <a href="([^"]+)">`)

// The search finds orders by their word and a part of a name, and each link leads to their page.
func TestTheSearchFindsOrders(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := string(w.submit(run("fw001")).Task)
	for q, want := range map[string]string{"halt": "/order/halt", "hal": "/order/halt", "lift": "/order/lift",
		"cancel+" + task: "/tasks/" + task + "/order/cancel", "CANCEL+" + task[:6]: "/tasks/" + task + "/order/cancel",
		"drain+fw00": "/hosts/fw001/order/drain", "/drain+fw001": "/hosts/fw001/order/drain",
		"release+fw001": "/hosts/fw001/order/release", "pause+acme": "/customers/acme/order/pause",
		"resume+default": "/zones/default/order/resume", "thaw+eu": "/zones/eu/order/thaw", "run+exec": "/run/exec",
		"freeze+acme": "/windows/order/freeze?level=customer&of=acme", "freeze": "/windows/order/freeze?level=everyone",
		"propose+acme": "/windows/order/propose?customer=acme"} {
		_, text := w.page("/search?q="+q, nil)
		links := orderLink.FindAllStringSubmatch(text, -1)
		if len(links) == 0 || links[0][1] != want {
			t.Errorf("%s leads to %q, want %s\n%s", q, links, want, text)
			continue
		}
		if res, text := w.page(want, nil); res.StatusCode != 200 {
			t.Errorf("%s: %s\n%s", want, res.Status, text)
		}
	}
	for _, q := range []string{"drain+nobody", "fw001", "dance+fw001", "halt+fw001"} {
		if _, text := w.page("/search?q="+q, nil); orderLink.MatchString(text) {
			t.Errorf("%s leads to an order:\n%s", q, text)
		}
	}
	if _, text := w.page("/search", nil); !strings.Contains(text, "/order/halt") ||
		strings.Count(text, `class="mono"`) < 15 {
		t.Errorf("the palette lists\n%s", text)
	}
}
