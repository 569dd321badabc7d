package worker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/testkit/sshtest"
	"muster/worker/attempt"
)

// The built-in script runs on a real sshd: it gets its arguments exactly as written, its exit code
// is the one of the job, and it leaves nothing behind.
func TestAScriptOfTheOperator(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	client, err := remote.New(remote.Default())
	if err != nil {
		t.Fatal(err)
	}
	r, ok := scripts.Builtin("script")
	if !ok {
		t.Fatal("there is no script")
	}
	text := "#!/bin/sh\nprintf '<%s>' \"$@\"; echo; exit 7\n"
	v, err := r.Bind(map[string]string{"args": `-v 'a b' "$(echo c)"`}, map[string][]byte{"script": []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	action, err := json.Marshal(r.Freeze(v))
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{t: t, q: newQueue(t), hosts: newHosts(), cfg: Default(), log: hclog.NewNullLogger(),
		bootClock: bootClock{zero: time.Now()}, times: &fakeTimes{}}
	s.hosts.door = attempt.SSH(client)
	s.q.specs[task1] = jobs.Spec{Timeout: jobs.AttemptTimeout(r.Timeout), Retry: jobs.DefaultPolicy(), Action: action}
	l := newLife(t, s)
	host := sshd.Host
	l.grant.Host, l.grant.Timeout = &host, jobs.AttemptTimeout(r.Timeout)
	got := l.live(3)
	if got.Outcome != jobs.Failed || *got.ExitCode != 7 || !strings.Contains(l.said, "<-v><a b><c>") {
		t.Errorf("%+v\n%s", got, l.said)
	}
	if left, _ := filepath.Glob("/tmp/muster-" + string(task1) + "*"); len(left) > 0 {
		for _, f := range left {
			_ = os.Remove(f)
		}
		t.Errorf("left behind: %v", left)
	}
}
