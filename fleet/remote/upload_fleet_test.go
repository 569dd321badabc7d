package remote_test

import (
	"strings"
	"testing"
	"time"

	"muster/fleet/remote"
	"muster/internal/fakefleet"
)

// A pretended host takes uploads as a real one does, until its disk is full.
func TestUploadToPretendedHosts(t *testing.T) {
	t.Parallel()
	f, err := fakefleet.Start(fakefleet.Config{Hosts: 2, DiskBytes: 300 << 10,
		Personality: func(i int) fakefleet.Personality {
			return []fakefleet.Personality{fakefleet.Normal, fakefleet.Fail}[i]
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.WriteFiles(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, f.Hosts()[0])
	for i, test := range []struct {
		size, had int
		words     string
	}{{100 << 10, 0, ""}, {100 << 10, 100 << 10, ""}, {400 << 10, 0, "No space left on device"}} {
		var heard progress
		u := upload("/etc/rules", 0o644, []byte(strings.Repeat("x", test.size)))
		u.Progress = heard.hear
		err := conn.Upload(t.Context(), u)
		if (err == nil) != (test.words == "") || err != nil && (remote.KindOf(err) != remote.KindFailed ||
			!strings.Contains(err.Error(), test.words)) {
			t.Errorf("upload %d: %v, want %q", i, err, test.words)
		}
		if p := heard.get(); p.Had != int64(test.had) || err == nil && p.Had+p.Sent != p.Size {
			t.Errorf("upload %d: %+v", i, p)
		}
	}
	left, err := conn.Run(t.Context(), remote.Command{Shell: "ls /etc; wc -c < /etc/rules", Bound: time.Minute})
	if said := string(left.Output.Bytes()); err != nil || strings.Contains(said, ".part") ||
		!strings.HasSuffix(said, "\n102400\n") {
		t.Errorf("there is %q, %v", said, err)
	}
	// One that runs something else is not believed.
	err = connect(t, f.Hosts()[1]).Upload(t.Context(), upload("/etc/rules", 0o644, []byte("x")))
	if remote.KindOf(err) != remote.KindFailed {
		t.Errorf("a host that fails: %v", err)
	}
}
