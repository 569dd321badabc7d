package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"muster/api"
	"muster/cli"
	"muster/cli/bundle"
	"muster/internal/fakefleet"
)

// unpack returns the files of a bundle by their names in its folder.
func unpack(t *testing.T, file string) map[string][]byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for tape := tar.NewReader(zip); ; {
		h, err := tape.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[path.Base(h.Name)], err = io.ReadAll(tape); err != nil {
			t.Fatal(err)
		}
	}
}

// bundled returns all parts of the bundles that are made with the configuration of each role, for
// the sweep after canaries. Nothing may be missing: what is left out was not swept.
func (a *aviary) bundled() (out []place) {
	a.t.Helper()
	logs := []string{}
	for _, p := range a.roles {
		a.write(p.name+".log", p.log.String())
		logs = append(logs, "--log", a.file(p.name+".log"))
	}
	for _, role := range []string{"server", "master"} {
		file := a.file(role + ".tar.gz")
		if err := os.RemoveAll(file); err != nil {
			a.t.Fatal(err)
		}
		a.cli(append([]string{"support-bundle", "--config", a.file(role + ".yaml"), "--out", file}, logs...)...)
		parts := unpack(a.t.(*testing.T), file)
		var m bundle.Manifest
		if err := json.Unmarshal(parts["manifest.json"], &m); err != nil || len(m.LeftOut) > 0 || len(m.Parts) < 15 {
			a.t.Errorf("bundle of the %s: %v: %d parts, left out: %+v", role, err, len(m.Parts), m.LeftOut)
		}
		for name, text := range parts {
			out = append(out, place{"support bundle of the " + role, name, text})
		}
	}
	return out
}

// A part that the caller may not read is left out of a bundle and named, and so is a server that is
// away; the rest is in it. A file that is there stays.
func TestABundleNamesWhatItLacks(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newCellar(t, inventory)
	h.write("access.yaml", "who:\n  - {principal: os:root, roles: [admin]}\n"+
		"  - {principal: user:bob, roles: [viewer], hosts: fw*}\n")
	h.configure(map[string]any{"server": map[string]any{"access": h.file("access.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.write("role.log", "a line\n"+strings.Repeat("x", 3000)+"\nlast line\n")

	make := func(file string, more ...string) (m bundle.Manifest, code int) {
		code = h.query(&m, append([]string{"support-bundle", "--config", h.file("muster.yaml"), "--log",
			h.file("role.log"), "--out", h.file(file)}, more...)...)
		return m, code
	}
	whole, code := make("whole.tar.gz")
	if code != cli.ExitOK || len(whole.LeftOut) > 0 {
		t.Errorf("exit %d, left out: %+v", code, whole.LeftOut)
	}
	parts := unpack(t, h.file("whole.tar.gz"))
	if info, err := os.Stat(h.file("whole.tar.gz")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others can read it", info, err)
	}
	for _, p := range whole.Parts {
		if len(parts[p.Name]) != p.Bytes || p.Bytes == 0 {
			t.Errorf("%s has %d bytes, the manifest says %d", p.Name, len(parts[p.Name]), p.Bytes)
		}
	}
	for name, words := range map[string]string{"configuration.json": `"node.name": "node1"`,
		"redis.json": `"redis_version"`, "doctor.json": `"findings"`, "logs.txt": "last line",
		"metrics.txt": "muster_build_info", "health.json": `"redis": "ok"`, "versions.json": "go-redis"} {
		if !strings.Contains(string(parts[name]), words) {
			t.Errorf("%s lacks %s: %.500s", name, words, parts[name])
		}
	}
	if _, code := h.muster("support-bundle", "--config", h.file("muster.yaml"), "--out", h.file("role.log")); code !=
		cli.ExitNotAll {
		t.Errorf("exit %d for a file that is there", code)
	}

	var made api.TokenAnswer
	h.query(&made, "token", "create", "bob", "--owner", "user:bob")
	cmd := exec.CommandContext(t.Context(), h.bin, "support-bundle", "--config", h.file("muster.yaml"), "--log",
		h.file("role.log"), "--list", "-o", "json")
	cmd.Env = append(os.Environ(), "MUSTER_URL="+h.url, "MUSTER_TOKEN="+made.Token)
	cmd.Dir = t.TempDir()
	out, _ := cmd.Output()
	var less bundle.Manifest
	if err := json.Unmarshal(out, &less); err != nil || cmd.ProcessState.ExitCode() != cli.ExitNotAll {
		t.Fatalf("%s, %v: %s", cmd.ProcessState, err, out)
	}
	for _, name := range []string{"nodes.json", "audit.json", "history.json", "metrics.txt"} {
		if !slices.ContainsFunc(less.LeftOut, func(l bundle.LeftOut) bool {
			return l.Name == name && strings.Contains(l.Why, "user:bob")
		}) || slices.ContainsFunc(less.Parts, func(p bundle.Part) bool { return p.Name == name }) {
			t.Errorf("%s is not left out for bob: %+v", name, less.LeftOut)
		}
	}
	if files, err := os.ReadDir(cmd.Dir); err != nil || len(files) > 0 {
		t.Errorf("--list wrote %v, %v", files, err)
	}

	h.server.cmd.Process.Kill()
	<-h.server.done
	away, code := make("away.tar.gz")
	if code != cli.ExitNotAll || len(away.Parts) != 5 || len(away.LeftOut) != len(whole.Parts)-5 {
		t.Errorf("without a server: exit %d, %+v", code, away)
	}
}
