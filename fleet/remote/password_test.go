package remote_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// A command that asks for a password finds neither a terminal nor input, so it ends at once
// with its own message and nobody waits until the bound. su asks as sudo does, by PAM.
func TestRealPasswordsAreAskedInVain(t *testing.T) {
	t.Parallel()
	su := "su -c id root"
	if os.Getuid() == 0 { // root is never asked
		su = "setpriv --reuid 65534 --regid 65534 --clear-groups " + su
	}
	for _, fence := range []fleet.Fence{fleet.FenceNone, fleet.FenceRequired} {
		t.Run(string(fence), func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, sshtest.Options{})
			h.host.Fence = fence
			for i, test := range []struct{ shell, words string }{
				{su, "Authentication failure"},
				{"cat </dev/tty", "/dev/tty"},
				{`printf 'password: '; read -r word || echo "none was given"; exit 1`, "none was given"},
			} {
				r := step("j", int64(i+1))
				r.Step = i
				begun := time.Now()
				result, err := h.connect().Run(t.Context(), remote.Command{Shell: test.shell, Bound: time.Minute,
					Record: &r})
				took := time.Since(begun)
				if err != nil || result.ExitCode == 0 || !strings.Contains(string(result.Output.Bytes()), test.words) {
					t.Errorf("%s: got %+v, %v, want that it fails with %q", test.shell, result, err, test.words)
				}
				if took > 30*time.Second { // PAM itself waits some seconds
					t.Errorf("%s: it took %s of its minute", test.shell, took)
				}
			}
		})
	}
}
