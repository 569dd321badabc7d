package main

import (
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/testkit/porttest"
)

// A thief can do nothing with a token once it is removed.
func TestDrillOfALeakedToken(t *testing.T) {
	longDrill(t)
	f, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	h := newCellar(t, inventory)
	base := porttest.Addr(t)
	h.write("access.yaml", "who:\n  - {principal: os:root, roles: [admin]}\n  - {principal: user:ci, roles: [operator]}\n")
	h.configure(map[string]any{"server": map[string]any{"access": h.file("access.yaml"),
		"listen": []string{listenOn(h.url), base}}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	token, code := h.muster("token", "create", "ci", "--owner", "user:ci")
	if code != 0 {
		t.Fatalf("token create: exit %d", code)
	}
	thief := func(word string) (said string, code int) {
		cmd := exec.CommandContext(t.Context(), h.bin, "exec", "all", "--", ": "+word)
		cmd.Env = append(os.Environ(), "MUSTER_URL=http://"+base, "MUSTER_TOKEN="+strings.TrimSpace(token))
		text, _ := cmd.CombinedOutput()
		return string(text), cmd.ProcessState.ExitCode()
	}
	if said, code := thief("stolen"); code != 0 {
		t.Fatalf("the token gives no order: %s", said)
	}
	h.lookUntil("history", func(c *cli.Client) (any, bool, error) { // it is written a moment later
		var page api.PastEvents
		ask := url.Values{"who": {"user:ci"}, "from": {"2026-01-01T00:00:00Z"}}
		err := c.Get(t.Context(), "/v1/history/events", ask, &page)
		return page, len(page.Events) > 0, err
	})
	d := drillOf(h, "A token has leaked")
	d.wants(d.play(), "ci", "user:ci")
	if said, code := thief("afterwards"); code != cli.ExitUsage {
		t.Errorf("the token still counts: exit %d, %s", code, said)
	}
	d.wants(d.play(), "task.submit", "submit", "stolen")
	d.play()
	ran := map[string]int{}
	for _, e := range f.Log() {
		for _, word := range []string{"stolen", "afterwards"} {
			if strings.Contains(e.Command, word) {
				ran[word]++
			}
		}
	}
	if ran["stolen"] != 2 || ran["afterwards"] != 0 {
		t.Errorf("the hosts ran %v", ran)
	}
}
