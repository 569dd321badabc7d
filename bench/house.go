package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"muster/internal/fakefleet"
	"muster/internal/serverkey"
)

// house is a server as it is shipped, and a node if it has slots. Their Redis was empty.
type house struct {
	server, master *process
	dir            string // with the socket of the server
	muster         string // path of the binary
}

// newHouse starts a server for the hosts in the folder of the bench, and a node of a size.
func (b *bench) newHouse(ctx context.Context, size nodeSize) (h *house, err error) {
	if err := b.redis.empty(ctx); err != nil {
		return nil, err
	}
	h = &house{muster: b.muster}
	if h.dir, err = os.MkdirTemp(b.dir, "house-"); err != nil {
		return nil, err
	}
	config, err := h.write(b, size)
	if err != nil {
		return nil, err
	}
	if h.server, err = b.start("server", b.muster, "server", "--config", config); err != nil {
		return nil, err
	}
	if err = h.server.until(ctx, look, func() (bool, error) {
		_, err := h.client().Get("http://server/healthz")
		return err == nil, nil
	}); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if size.children == 0 {
		return h, nil
	}
	if h.master, err = b.start("master", b.muster, "master", "--config", config); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, h.server.until(ctx, look, func() (bool, error) {
		out, err := h.run(ctx, nil, "nodes", "-o", "json")
		return err == nil && strings.Contains(out, `"bench"`), nil
	})
}

// write writes the configuration, and returns its path.
func (h *house) write(b *bench, size nodeSize) (string, error) {
	file := func(name string) string { return filepath.Join(h.dir, name) }
	config, err := json.Marshal(map[string]any{
		"redis": map[string]any{"url": b.redis.url()},
		"server": map[string]any{"listen": []string{"unix:" + file("api.sock")},
			"key": file("server.key"), "events": file("events.yaml")},
		"master":    map[string]any{"children": max(size.children, 1), "slots": max(size.slots, 1)},
		"node":      map[string]any{"name": "bench", "dir": file("node")},
		"history":   map[string]any{"url": "sqlite://" + file("history.db")},
		"inventory": []string{filepath.Join(b.dir, fakefleet.InventoryFile)},
		"log":       map[string]any{"level": "warn"},
	})
	if err != nil {
		return "", err
	}
	secrets := map[string]string{"server.key": serverkey.File("bench", [serverkey.Size]byte{1}),
		"secret": webhookSecret + "\n"}
	for name, text := range secrets {
		err = errors.Join(err, os.WriteFile(file(name), []byte(text), 0o400))
	}
	source := fmt.Sprintf("sources:\n- {name: %s, preset: github, secret_file: %s, per_minute: %d}\n",
		webhookSource, file("secret"), 2*webhooksAMinute)
	return file("muster.yaml"), errors.Join(err,
		os.WriteFile(file("events.yaml"), []byte(source), 0o600),
		os.WriteFile(file("muster.yaml"), config, 0o600))
}

// client speaks to the server over its socket.
func (h *house) client() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(h.dir, "api.sock"))
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 32},
		Timeout: time.Minute}
}

// run runs a command of an operator, and reads its JSON into an answer, if there is one.
func (h *house) run(ctx context.Context, answer any, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, h.muster, args...)
	cmd.Env = []string{"MUSTER_URL=unix://" + filepath.Join(h.dir, "api.sock"), "HOME=" + h.dir}
	var words strings.Builder
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err == nil && answer != nil {
		err = json.Unmarshal(out, answer)
	}
	if err != nil {
		err = fmt.Errorf("muster %s: %w: %s", strings.Join(args, " "), err, words.String())
	}
	return string(out), err
}

func (h *house) close() error {
	var errs []error
	for _, p := range []*process{h.master, h.server} {
		if p != nil {
			errs = append(errs, p.stop())
		}
	}
	return errors.Join(errs...)
}
