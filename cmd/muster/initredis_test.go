package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"muster/internal/fit"
	"muster/testkit/redistest"
)

// A Redis as it is installed may evict and forget. Init says which commands make it ready; they do.
func TestInitSaysWhatRedisNeeds(t *testing.T) {
	t.Parallel()
	h := newCellar(t, "hosts: []\n")
	plain := redistest.StartServer(t)
	plain.Do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	plain.Do(t, "CONFIG", "SET", "appendonly", "no")
	mine := h.redis
	h.redis = plain
	h.config(nil)
	h.redis = mine
	type answer struct{ Redis fit.Redis }
	ask := func() (m answer) {
		c := exec.CommandContext(t.Context(), h.bin, "init", "--file", h.file("server.key"), "-o", "json")
		c.Env = append(os.Environ(), "MUSTER_CONFIG="+h.file("muster.yaml"))
		out, err := c.Output()
		if err = errors.Join(err, json.Unmarshal(out, &m)); err != nil {
			t.Fatalf("init: %v: %s", err, out)
		}
		return m
	}
	m := ask()
	if m.Redis.Ready || len(m.Redis.Do) != 3 {
		t.Fatalf("init says of a Redis that forgets: %+v", m.Redis)
	}
	// The file of the server of the test cannot be written anew; all else is done as it is said.
	for _, command := range m.Redis.Do[:2] {
		words := strings.Fields(command)
		if words[0] != "redis-cli" {
			t.Fatalf("init says %q", command)
		}
		args := append([]string{"-u", plain.Config().URL}, words[1:]...)
		if out, err := exec.CommandContext(t.Context(), "redis-cli", args...).CombinedOutput(); err != nil ||
			strings.TrimSpace(string(out)) != "OK" {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	if m = ask(); !m.Redis.Ready || m.Redis.Users {
		t.Errorf("init says of a Redis that is ready: %+v", m.Redis)
	}
	plain.Kill()
	if m = ask(); m.Redis.Ready || m.Redis.Error == "" || len(m.Redis.Do) != 0 {
		t.Errorf("init says of a Redis that is away: %+v", m.Redis)
	}
}
