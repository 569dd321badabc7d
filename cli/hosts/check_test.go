package hosts

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/remote"
)

func TestWhatAHostAnswersIsJudged(t *testing.T) {
	t.Parallel()
	sent := time.Unix(1_800_000_000, 0)
	fine := "now 1800000000\nlack\nplace /var/lib/muster\nfree 1000000\nend\n"
	for _, test := range []struct {
		name, said string
		fence      fleet.Fence
		code       int
		err        error
		want       []string // what, then ! if it is wrong, then a part of the text
	}{
		{"well", fine, fleet.FenceRequired, 0, nil, nil},
		{"sudo works", fine + "", fleet.FenceAuto, 0, nil, nil},
		{"noise", "~Welcome!\r\n" + fine, fleet.FenceAuto, 0, nil, []string{"shell its login shell says"}},
		{"clock ahead", strings.Replace(fine, "1800000000", "1800003602", 1), fleet.FenceAuto, 0, nil,
			[]string{"clock! its clock is 1h00m ahead"}},
		{"clock behind", strings.Replace(fine, "1800000000", "1799999990", 1), fleet.FenceAuto, 0, nil,
			[]string{"clock! its clock is 10s behind"}},
		{"clock a little off", strings.Replace(fine, "1800000000", "1799999996", 1), fleet.FenceAuto, 0, nil, nil},
		{"no clock", strings.Replace(fine, "1800000000", "%s", 1), fleet.FenceAuto, 0, nil,
			[]string{"clock it does not tell"}},
		{"full", strings.Replace(fine, "free 1000000", "free 12000", 1), fleet.FenceAuto, 0, nil,
			[]string{"disk! 11 MB free in /var/lib/muster"}},
		{"no flock", strings.Replace(fine, "lack", "lack flock setsid", 1), fleet.FenceAuto, 0, nil,
			[]string{"record unfenced, it cannot keep a record of attempts: it lacks flock setsid"}},
		{"no flock, which is required", strings.Replace(fine, "lack", "lack flock", 1), fleet.FenceRequired, 0, nil,
			[]string{"record! unfenced"}},
		{"no flock, which nobody wants", strings.Replace(fine, "lack", "lack flock", 1), fleet.FenceNone, 0, nil, nil},
		{"no place", strings.Replace(fine, "/var/lib/muster", "", 1), fleet.FenceRequired, 0, nil,
			[]string{"record! unfenced, it cannot keep a record of attempts: it has no writable place"}},
		{"sudo asks", "sudo no sudo: a password is required\n" + fine, fleet.FenceAuto, 0, nil,
			[]string{"sudo! sudo without a password is refused, it said: \"sudo: a password is required\""}},
		{"no shell", "~% unknown command", fleet.FenceAuto, 1, nil, []string{"shell! it has no POSIX shell for us"}},
		{"no shell on an appliance", "~?", fleet.FenceNone, 1, nil, []string{"shell it has no POSIX shell"}},
		{"cut", "now 1800000000\n", fleet.FenceAuto, -1, &remote.Error{Kind: remote.KindLost, Err: errors.New("cut")},
			[]string{"lost! it let us in, but: cut"}},
		{"silent", "", fleet.FenceNone, -1, &remote.Error{Kind: remote.KindCancelled, Err: errors.New("late")},
			[]string{"shell! it let us in, and answered nothing in time"}},
	} {
		p := hostProbe{nonce: "x", dir: "/var/lib/muster", sent: sent, back: sent.Add(time.Second)}
		said := ""
		for line := range strings.Lines(test.said) {
			if noise, ok := strings.CutPrefix(line, "~"); ok {
				said += noise
			} else {
				said += "x " + line
			}
		}
		got := p.judge(fleet.Host{Fence: test.fence}, said, test.code, test.err)
		if len(got) != len(test.want) {
			t.Errorf("%s: %+v, want %q", test.name, got, test.want)
			continue
		}
		for i, f := range got {
			text := f.What + map[bool]string{true: "!"}[f.Wrong] + " " + f.Text
			if !strings.HasPrefix(text, test.want[i]) || f.Wrong && f.Do == "" {
				t.Errorf("%s: %q, do %q; want %q", test.name, text, f.Do, test.want[i])
			}
		}
	}
}

func TestFindingsAreTold(t *testing.T) {
	t.Parallel()
	slow := finding{What: "clock", Text: "late", Do: "mend it", Wrong: true}
	bare := finding{What: "record", Text: "unfenced"}
	got := checkedText([]Checked{
		{Host: "fw1", Well: true}, {Host: "fw2", Findings: []finding{bare, slow}},
		{Host: "fw3", Findings: []finding{bare}, Well: true}, {Host: "fw4", Findings: []finding{bare}, Well: true},
	}, false)
	want := "1 host: fw2: clock: late\n  mend it\n3 hosts: fw[2-4]: record: unfenced\n3 of 4 hosts well\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
