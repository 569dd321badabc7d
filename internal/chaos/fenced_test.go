package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/sshtest"
)

// Beside the pretended hosts, which have no flock, there are some real ones that keep a
// record of what they are given (G4). Their commands write down themselves when they begin
// and end, and are judged like those of the others, and more strictly.

const realCount = 4

// onceRunbook is for real hosts alone.
const onceRunbook = `
name: once
arguments: {task: {type: string}, nap: {type: string}}
timeout: 5s
steps:
  - name: one
    run: "echo begin {{task}} 1 $(date +%s.%N) >> ~/seen; sleep {{nap}}; echo end {{task}} 1 $(date +%s.%N) >> ~/seen"
  - name: two
    run: "echo begin {{task}} 2 $(date +%s.%N) >> ~/seen; sleep {{nap}}; echo end {{task}} 2 $(date +%s.%N) >> ~/seen"
`

const recordTells = "unknown never, where the record of a host tells"

// A realHost is one with an sshd, and a home of its own.
type realHost struct {
	fleet.Host
	home string
}

// startReal starts the hosts that keep records.
func startReal(t testing.TB) (hosts []realHost) {
	for i := range realCount {
		s := sshtest.StartSSHD(t, sshtest.Options{Address: fmt.Sprintf("127.0.0.%d", i+2)})
		h := realHost{s.Host, filepath.Dir(s.Key)}
		h.Name, h.Customer, h.Zone, h.Fence = realName(i), "acme", fleet.DefaultZone, fleet.FenceRequired
		hosts = append(hosts, h)
	}
	return hosts
}

func realName(i int) string { return fmt.Sprint("real", i+1) }

// realCommands returns the commands that ran on real hosts, and those that overlapped.
func (h *house) realCommands(t *testing.T) (list []command, overlaps []fakefleet.Overlap) {
	t.Helper()
	for _, host := range h.real {
		text, err := os.ReadFile(filepath.Join(host.home, "seen"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		more, twice, err := parseSeen(host.Name, string(text))
		if err != nil {
			t.Errorf("%s: %v", host.Name, err)
		}
		list, overlaps = append(list, more...), append(overlaps, twice...)
	}
	return list, overlaps
}

// parseSeen reads lines "begin TASK STEP SECONDS" and "end …". A command that was stopped has no
// end, so its duration is not known.
func parseSeen(host, text string) (list []command, overlaps []fakefleet.Overlap, err error) {
	for line := range strings.Lines(text) {
		var word, task, at string
		var step int
		if _, err := fmt.Sscan(line, &word, &task, &step, &at); err != nil {
			return list, overlaps, fmt.Errorf("line %q: %w", line, err)
		}
		seconds, err := strconv.ParseFloat(at, 64)
		if err != nil {
			return list, overlaps, fmt.Errorf("line %q: %w", line, err)
		}
		when := time.UnixMicro(int64(seconds * 1e6))
		id := jobs.NewID(jobs.TaskID(task), host)
		if word == "begin" {
			e := fakefleet.Entry{Host: host, Command: line, Start: when, End: when}
			list = append(list, command{id, step, e})
			continue
		}
		for i := len(list) - 1; i >= 0; i-- {
			if c := &list[i]; c.job == id && c.step == step && c.End.Equal(c.Start) {
				c.End = when
				for _, later := range list[i+1:] {
					overlaps = append(overlaps, fakefleet.Overlap{Host: host, First: c.Entry, Second: later.Entry})
				}
				break
			}
		}
	}
	return list, overlaps, nil
}

// judgeFenced looks at a job that ended unknown although its host knows better: its last
// command has come to an end before. A job that took three workers with it is given up
// without its host being asked, and one whose node does not reach the host cannot ask.
func (r *record) judgeFenced(e end, id jobs.ID, ran []command) {
	r.checked.add(recordTells, 1)
	excused := strings.Contains(e.err, "cancel") || strings.Contains(e.err, "workers") ||
		strings.Contains(e.err, "connect") || strings.Contains(e.err, "unreachable")
	if e.outcome != jobs.Unknown || excused || len(ran) == 0 {
		return
	}
	last := ran[len(ran)-1]
	if last.End.After(last.Start) && last.End.Before(e.at) {
		r.say("%s is unknown (%s), and its step %d ran from %s to %s", id, e.err, last.step, clock(last.Start),
			clock(last.End))
	}
}

func TestTheJudgeReadsWhatRealHostsSaw(t *testing.T) {
	t.Parallel()
	const a, b = "0000000001", "0000000002"
	list, overlaps, err := parseSeen("real1", "begin "+a+" 1 10.5\nbegin "+b+" 1 11\nend "+b+" 1 12\nend "+a+" 1 13\n"+
		"begin "+a+" 2 14\n")
	if err != nil || len(list) != 3 || len(overlaps) != 1 || overlaps[0].Second.Start != time.Unix(11, 0) {
		t.Fatalf("got %+v, %+v, %v", list, overlaps, err)
	}
	if d := list[0].End.Sub(list[0].Start); d != 2500*time.Millisecond || !list[2].End.Equal(list[2].Start) {
		t.Errorf("the first took %s, the last one ended %s", d, list[2].End)
	}
	if _, _, err := parseSeen("real1", "begin x\n"); err == nil {
		t.Error("half a line is read")
	}
	r := newRecord(nil)
	r.judgeFenced(end{at: time.Unix(20, 0), outcome: jobs.Unknown, err: "lost"}, list[0].job, list[:1])
	if len(r.wrong) != 1 {
		t.Errorf("unknown, although its host knows: %q", r.wrong)
	}
	r.judgeFenced(end{at: time.Unix(20, 0), outcome: jobs.Unknown, err: "lost"}, list[0].job, list)
	if len(r.wrong) != 1 {
		t.Errorf("unknown, of a step without an end: %q", r.wrong)
	}
}
