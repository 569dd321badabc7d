package remote_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// scopes replaces systemd-run, which needs systemd: as with --scope, it executes the given
// command in its own place. The variable SCOPE selects how it fails.
const scopes = `#!/bin/sh
echo "$*" | head -n 1 >>"$CALLS"
while :; do
	case $1 in
	--expand*) case $SCOPE in *old*) exit 1 ;; esac ;;
	--*) ;;
	*) break ;;
	esac
	shift
done
case $SCOPE/$1 in
*hangs*/true) exec sleep 600 ;;
*once*/sh) exit 1 ;;
*deaf*/sh) exec 5>&- ;;
esac
SCOPED=1 exec "$@"
`

// leaving is record.sh on a host whose logind ends what is left of a session.
func leaving(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("record.sh")
	if err != nil {
		t.Fatal(err)
	}
	all, ok := strings.CutSuffix(string(text), "\nmain\n")
	if !ok {
		t.Fatal("record.sh does not end with main")
	}
	return all + "\ninSession() { [ -z \"$SCOPED\" ]; }\nkills() { :; }\nmain\n"
}

// A step leaves its session if it can, and is done once and told all the same if it cannot: also
// if that shows only when it is tried in earnest.
func TestAStepLeavesItsSessionOrStays(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "systemd-run"), []byte(scopes), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, scope, want string }{
		{"systemd 254", "", "out"},
		{"older", "old", "out"},
		{"fails the second time", "once", "in"},
		{"older, fails the second time", "old once", "in"},
		{"is not heard", "deaf", "in"},
		{"never answers", "hangs", "in"},
	} {
		for _, shell := range []string{"sh", "busybox sh", "bash"} {
			for _, fence := range []string{"required", "auto"} {
				if test.scope == "hangs" && shell+fence != "shrequired" {
					continue // ten seconds are enough
				}
				t.Run(test.name+" "+shell+" "+fence, func(t *testing.T) {
					t.Parallel()
					l := leaver{t, bin, shell, fence, test.scope}
					l.leaves(test.want)
				})
			}
		}
	}
}

// leaver is one way to do a step outside of its session.
type leaver struct {
	t                        *testing.T
	bin, shell, fence, scope string
}

func (l leaver) leaves(want string) {
	l.t.Helper()
	dir := lastingDir(l.t)
	place := filepath.Join(dir, "records")
	if l.fence == "auto" {
		place = "/proc/none" // so it is done without a record
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	words := append(strings.Fields(l.shell), "-c", `eval "$record"`)
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Stdin = strings.NewReader("given")
	c.Env = []string{"PATH=" + l.bin + ":" + os.Getenv("PATH"), "HOME=/proc", "SCOPE=" + l.scope,
		"CALLS=" + filepath.Join(dir, "calls"), "nonce=NONCE", "place=" + place, "job=task:host",
		"request=run " + l.fence + " k 1 000000001 000000000 000000001 000000000 0 0 60 0",
		`text=echo once >>` + dir + `/done; echo "${SCOPED:-0} $(cat)"; exit 3`, "record=" + leaving(l.t)}
	out, err := c.CombinedOutput()
	said := map[string]string{"in": "\n0 given\n", "out": "\n1 given\n"}[want]
	if !strings.Contains(string(out), said) || strings.Count(string(out), "NONCE hello") != 1 {
		l.t.Errorf("it said %q, want %q in it", out, said)
	}
	if l.fence == "auto" && c.ProcessState.ExitCode() != 3 || l.fence != "auto" &&
		(err != nil || !strings.Contains(string(out), "NONCE end exit 3 0")) {
		l.t.Errorf("it ended with %v, %q", err, out)
	}
	if done, err := os.ReadFile(filepath.Join(dir, "done")); string(done) != "once\n" {
		l.t.Errorf("done: %q, %v", done, err)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	last := string(calls[strings.LastIndex(strings.TrimSpace(string(calls)), "\n")+1:])
	if l.scope == "" && !strings.Contains(last, "--expand-environment=no") {
		l.t.Errorf("called as %s, %v", calls, err)
	}
}
