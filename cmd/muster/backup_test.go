package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/jobs/queue/archive"
	"muster/jobs/queue/keys"
)

// A backup is made in the midst of work, work goes on, and then Redis and SQL are gone, with all
// processes. The hosts keep no record. After the restore no command runs a second time, by the
// hosts' own log: what was open ends unknown, what had ended stays, and new work runs.
func TestNothingRunsTwiceAfterARestoreOfABackup(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: a restore looks for life for 6 s")
	}
	const hosts, early = 24, 4
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newCellar(t, inventory)
	h.configure(map[string]any{"master": fourByFour,
		"history": map[string]any{"url": "sqlite://" + h.file("history.db")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	m := h.master()
	first := h.submit("all", held)
	letGo(t, f, h.inHand(16)[:early]...)
	h.awaitPast(first, early)
	h.inHand(16)
	key, recipient := h.ageKey()
	h.redisUser("muster-backup", strings.Fields(archive.ReadRules))
	file := h.file("backup")
	if code, _, said := h.offline("muster-backup", "backup", "create", file, "--recipient", recipient); code != 0 {
		t.Fatalf("backup create: exit %d: %s", code, said)
	}
	letGo(t, f)
	wantOutcomes(t, h.wait(first), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	wantOutcomes(t, h.wait(h.submit("all", "echo later")), map[jobs.Outcome]int{jobs.Succeeded: hosts})

	h.restoreArgs(file, key).refused(cli.ExitNotAll, "node node1 beats", "--replace")
	h.burnsDown(m)
	var r struct{ Ended, Unknown int }
	h.restoreArgs(file, key).runs(&r)
	if r.Unknown != hosts-early {
		t.Errorf("%d jobs are unknown, want %d", r.Unknown, hosts-early)
	}
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	h.server.await("history was asked what has ended")
	for _, order := range []string{"resume --all", "nodes thaw"} {
		args := append(strings.Fields(order), "--reason", "looked at it")
		if out, code := h.muster(args...); code != 0 {
			t.Fatalf("%s: exit %d: %s", order, code, out)
		}
	}
	wantOutcomes(t, h.wait(first), map[jobs.Outcome]int{jobs.Succeeded: early, jobs.Unknown: hosts - early})
	wantOutcomes(t, h.wait(h.submit("all", "echo anew")), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	h.ranOnce(f, "/tmp/go", "echo later", "echo anew")
	h.awaitPast(first, hosts)
	var page api.AuditPage
	h.query(&page, "audit", "ls", "--verb", "installation.restore")
	if len(page.Entries) != 1 || page.Entries[0].Said.Reason != "the disk is gone" {
		t.Errorf("the audit log has %+v", page.Entries)
	}
}

// ranOnce fails the test unless each command ran once on each host, by the hosts' own log.
func (h *house) ranOnce(f *fakefleet.Fleet, commands ...string) {
	h.t.Helper()
	ran := map[string]int{}
	for _, e := range f.Log() {
		for _, command := range commands {
			if strings.Contains(e.Command, command) {
				ran[e.Host+" "+command]++
			}
		}
	}
	for what, n := range ran {
		if n > 1 {
			h.t.Errorf("%s: %d times", what, n)
		}
	}
	if want := len(f.Hosts()) * len(commands); len(ran) != want {
		h.t.Errorf("%d commands ran, want %d", len(ran), want)
	}
}

// burnsDown ends everything at once, and removes what Redis and SQL had.
func (h *house) burnsDown(m *process) {
	h.t.Helper()
	m.kill()
	h.server.kill()
	h.redis.Kill()
	gone, err := filepath.Glob(h.file("history.db*"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, path := range append(gone, filepath.Join(h.redis.Dir, "appendonlydir")) {
		if err := os.RemoveAll(path); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := h.redis.Start(); err != nil {
		h.t.Fatal(err)
	}
}

// ageKey makes a key of age, and returns its file and its recipient.
func (h *house) ageKey() (file, recipient string) {
	h.t.Helper()
	k, err := age.GenerateX25519Identity()
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("backup.key", k.String()+"\n")
	return h.file("backup.key"), k.Recipient().String()
}

// redisUser makes a user of Redis with the password "secret".
func (h *house) redisUser(name string, rules []string) {
	h.t.Helper()
	order := []any{"ACL", "SETUSER", name, "reset", "on", ">secret"}
	for _, rule := range rules {
		order = append(order, rule)
	}
	h.redis.Do(h.t, order...)
}

// offline runs a command that calls no server, as a user of Redis.
func (h *house) offline(user string, args ...string) (code int, out, words string) {
	h.t.Helper()
	c := exec.CommandContext(h.t.Context(), h.bin, append(args, "--config", h.file("muster.yaml"))...)
	c.Env = append(os.Environ(), "MUSTER_REDIS_USERNAME="+user, "MUSTER_REDIS_PASSWORD=secret")
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil && c.ProcessState == nil {
		h.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// restorer calls muster backup restore.
type restorer struct {
	h    *house
	args []string
}

func (h *house) restoreArgs(file, key string) restorer {
	return restorer{h, []string{"backup", "restore", file, "--identity", key, "--reason", "the disk is gone",
		"--yes-restore", "testhouse", "-o", "json"}}
}

// call calls it as a user with the rules of a server and those that the help names, and no more.
func (r restorer) call(args ...string) (code int, out, words string) {
	r.h.t.Helper()
	users, err := keys.Users([]string{"default"}, "")
	if err != nil {
		r.h.t.Fatal(err)
	}
	r.h.redisUser("muster-restore", append(users[0].Rules, strings.Fields(archive.RestoreRules)...))
	return r.h.offline("muster-restore", append(slices.Clone(r.args), args...)...)
}

func (r restorer) refused(exit int, words string, args ...string) {
	r.h.t.Helper()
	if code, _, said := r.call(args...); code != exit || !strings.Contains(said, words) {
		r.h.t.Errorf("restore: exit %d, want %d and %q: %s", code, exit, words, said)
	}
}

func (r restorer) runs(into any, args ...string) {
	r.h.t.Helper()
	code, out, said := r.call(args...)
	if err := json.Unmarshal([]byte(out), into); err != nil || code != 0 {
		r.h.t.Fatalf("restore: exit %d, %v: %s%s", code, err, out, said)
	}
}
