package remote_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// A recordingHost is a real sshd on a host that keeps records, and the node's side of it.
type recordingHost struct {
	t      testing.TB
	host   fleet.Host
	dir    string // of the records
	config remote.Config
}

// newRecordingHost starts one. Its tools are those of a set, or those of this machine.
func newRecordingHost(t testing.TB, o sshtest.Options) *recordingHost {
	t.Helper()
	sshd := sshtest.StartSSHD(t, o)
	h := &recordingHost{t: t, host: sshd.Host, dir: filepath.Join(lastingDir(t), "records"),
		config: patient()}
	h.host.Fence = fleet.FenceRequired
	h.config.RecordDir = h.dir
	return h
}

// lastingDir is a folder on a disk: what is in memory only is no place for records.
func lastingDir(t testing.TB) string {
	t.Helper()
	for _, parent := range []string{"", "/var/tmp", "."} {
		dir, err := os.MkdirTemp(parent, "muster-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		out, err := exec.Command("stat", "-f", "-c", "%T", dir).Output()
		if err == nil && !strings.Contains(string(out), "tmpfs") && !strings.Contains(string(out), "ramfs") {
			if dir, err = filepath.Abs(dir); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	t.Skip("there is no folder that is on a disk")
	return ""
}

func (h *recordingHost) connect() *remote.Conn {
	h.t.Helper()
	return connectWith(h.t, h.config, h.host)
}

// run does a step over a connection of its own.
func (h *recordingHost) run(r remote.Record, shell string) (remote.Result, error) {
	h.t.Helper()
	return h.connect().Run(h.t.Context(), remote.Command{Shell: shell, Bound: time.Minute, Record: &r})
}

// step is a record of a job with a token of so many seconds.
func step(job string, token int64) remote.Record {
	return remote.Record{Job: job, Token: 1_700_000_000_000_000 + token*1e6, Since: 1_700_000_000_000_000}
}

func again(r remote.Record) remote.Record {
	r.Again = true
	return r
}

// wantEnd holds what came of a step against "exit 3, attached: output".
func wantEnd(t testing.TB, result remote.Result, err error, want string) {
	t.Helper()
	got := fmt.Sprintf("exit %d: %s", result.ExitCode, result.Output.Bytes())
	if result.Attached {
		got = strings.Replace(got, ":", ", attached:", 1)
	}
	if err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func wantKind(t testing.TB, err error, kind remote.Kind, sent bool) {
	t.Helper()
	if remote.KindOf(err) != kind || wasSent(err) != sent {
		t.Errorf("got %v (%s, sent %t), want %s, sent %t", err, remote.KindOf(err), wasSent(err), kind, sent)
	}
}

func TestRealRecord(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			for _, test := range []struct {
				name, shell, stdin string
				code               int
				output             string
			}{
				{name: "output", shell: "echo hello", output: "hello\n"},
				{name: "nothing", shell: "true"},
				{name: "both, in order", shell: "for i in 1 2; do echo o$i; echo e$i >&2; done",
					output: "o1\ne1\no2\ne2\n"},
				{name: "exit code", shell: "exit 42", code: 42},
				{name: "no newline", shell: "printf abc", output: "abc"},
				{name: "signal", shell: "kill -9 $$", code: 137},
				{name: "its own 124", shell: "exit 124", code: 124},
				{name: "stdin", shell: "sort -r", stdin: "a\nc\nb\n", output: "c\nb\na\n"},
				{name: "no stdin", shell: "cat; echo end", output: "end\n"},
				{name: "lines and quotes", shell: "x='a  b'\necho \"$x\" '!' \\\n \\\\ '%s'", output: "a  b ! \\ %s\n"},
				{name: "not UTF-8", shell: `printf '\377\000\033[1m'`, output: "\xff\x00\x1b[1m"},
				{name: "options", shell: "-x; +y", code: 127},
				{name: "its interrupts", shell: "trap | grep -c INT; kill -INT $$; echo alive", code: 130, output: "0\n"},
				{name: "no terminal", shell: "test -t 0 || test -t 1 || echo none", output: "none\n"},
				{name: "mask", shell: "umask", output: "0022\n"},
			} {
				c := remote.Command{Shell: test.shell, Bound: time.Minute}
				if test.stdin != "" {
					c.Stdin = strings.NewReader(test.stdin)
				}
				r := step("job-"+strings.ReplaceAll(test.name, " ", "-"), 1)
				c.Record = &r
				result, err := h.connect().Run(t.Context(), c)
				if test.name == "options" {
					result.Output = remote.Output{}
				}
				if t.Log(test.name); err != nil || result.Open || result.Unfenced != "" {
					t.Errorf("got %+v, %v", result, err)
				}
				wantEnd(t, result, err, fmt.Sprintf("exit %d: %s", test.code, test.output))
			}
		})
	}
}

// A second attempt takes the result of the first, whatever it would have done itself.
func TestRealRecordIsTakenByTheNextAttempt(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			result, err := h.run(step("j", 1), "echo once; exit 3")
			wantEnd(t, result, err, "exit 3: once\n")
			result, err = h.run(again(step("j", 2)), "echo twice")
			wantEnd(t, result, err, "exit 3, attached: once\n")

			_, err = h.run(step("k", 0), "echo too late")
			wantKind(t, err, remote.KindStale, false)
			// No record is no proof for a job that is older than the first record.
			_, err = h.run(again(step("l", 3)), "echo unproven")
			wantKind(t, err, remote.KindUntold, false)
			young := again(step("l", 4))
			young.Since = step("", 3).Token
			look := young
			look.Look = true
			_, err = h.run(look, "echo looked")
			wantKind(t, err, remote.KindNever, false)
			_, err = h.run(step("m", 3), "echo on its way when the other looked")
			wantKind(t, err, remote.KindStale, false)
			result, err = h.run(young, "echo now")
			wantEnd(t, result, err, "exit 0: now\n")

			// A step of the job itself has a record, so the folder would have one of the next.
			later := again(step("k", 5))
			later.Step = 1
			_, err = h.run(later, "echo unproven")
			wantKind(t, err, remote.KindUntold, false)
			result, err = h.run(step("k", 5), "echo one")
			wantEnd(t, result, err, "exit 0: one\n")
			result, err = h.run(later, "echo two")
			wantEnd(t, result, err, "exit 0: two\n")
		})
	}
}

// recordSystems are hosts with other shells and tools, as far as they can keep a record.
func recordSystems(t *testing.T) map[string]sshtest.Options {
	t.Helper()
	sets := toolsets(t)
	delete(sets, "mksh") // its descriptors above 2 are not handed on
	return sets
}
