package main

import (
	"fmt"
	"strings"
	"testing"

	"muster/cli"
	"muster/testkit/sshtest"
)

// A server without an inventory serves one that another server published. It says at its start that
// it publishes none itself, and a server with an inventory does not.
func TestAServerWithoutInventorySaysSo(t *testing.T) {
	t.Parallel()
	const words = "no inventory is configured: this server publishes none, and knows only hosts of one that another " +
		"server published; set inventory, or give --inventory FILE"
	h := newCellar(t, "hosts: []\n")
	h.configure(map[string]any{"inventory": []string{}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await(words)
	h.server.await("server listens")
	code, out, said := h.plainly("", "run", "exec", "all", "--arg", "cmd=id", "--detach")
	if code == cli.ExitOK || !strings.Contains(said, "no inventory is configured, so no host is known") {
		t.Errorf("run: exit %d, %s %s", code, out, said)
	}
	_, key := sshtest.NewKey(t)
	other := newHouse(t, fmt.Sprintf("hosts: [{name: a, address: 192.0.2.1, host_key: %q}]\n", key))
	if log := other.server.log.String(); strings.Contains(log, "no inventory is configured") {
		t.Errorf("with an inventory the log says %s", log)
	}
}
