package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"muster/fleet"
	"muster/server/pages/frame"
	"muster/testkit/redistest"
)

// throng returns n hosts of 30 customers.
func throng(n int) []fleet.Host {
	list := make([]fleet.Host, n)
	for i := range list {
		list[i] = fleet.Host{Name: fmt.Sprintf("h%05d", i), Zone: "default", User: "root", Port: 22,
			Customer: fmt.Sprintf("customer%02d", i%30), Fence: fleet.FenceNone,
			Address: fmt.Sprintf("10.%d.%d.%d", 1+i/62500, i/250%250, i%250+1)}
	}
	return list
}

// bigWorld is a world with a throng of n hosts on a redis-server: the embedded Redis sorts the whole
// queue again for each job that is taken.
func bigWorld(t *testing.T, n int) setup {
	t.Helper()
	cfg := redistest.StartServer(t).Config()
	return setup{redis: &cfg, inventory: fixed(throng(n))}
}

// TestAPageOfTwentyThousandHostsIsSmall bounds pages by the number of hosts that they show, not of
// those that there are.
func TestAPageOfTwentyThousandHostsIsSmall(t *testing.T) {
	t.Parallel()
	hosts := 20000
	if testing.Short() {
		hosts = 2000
	}
	w := start(t, bigWorld(t, hosts))
	task := string(w.submit(run("all")).Task)
	for _, path := range []string{"/", "/tasks", "/tasks/" + task, "/fleet", "/hosts/h00001", "/queue",
		"/tasks/" + task + "/order/cancel", "/search?q=h00"} {
		begun := time.Now()
		res, raw := w.raw("GET", path, nil, http.Header{"Accept": {"text/html"}})
		t.Logf("%-40s %7d bytes in %s", path, len(raw), time.Since(begun).Round(time.Millisecond))
		if res.StatusCode != http.StatusOK || len(raw) > 150<<10 {
			t.Errorf("%s: %s, %d bytes", path, res.Status, len(raw))
		}
	}
	for _, path := range []string{"/tasks/" + task + "/map", "/fleet/map"} {
		begun := time.Now()
		_, raw := w.raw("GET", path, nil, nil)
		t.Logf("%-40s %7d bytes in %s", path, len(raw), time.Since(begun).Round(time.Millisecond))
	}
	// A page that has the names gets the cells alone.
	var first, again frame.CellMap
	path := "/tasks/" + task + "/map"
	_, raw := w.raw("GET", path, nil, nil)
	if err := json.Unmarshal(raw, &first); err != nil || len(first.Names) != hosts || first.Same {
		t.Fatalf("the map: %v, %d names", err, len(first.Names))
	}
	_, less := w.raw("GET", path+"?known="+first.Set, nil, nil)
	err := json.Unmarshal(less, &again)
	if err != nil || !again.Same || len(again.Names) != 0 || again.Cells != first.Cells || 4*len(less) > len(raw) {
		t.Errorf("the map again: %v, same=%t, %d names, %d bytes after %d", err, again.Same, len(again.Names),
			len(less), len(raw))
	}
}
