package hosts

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A small device may have a shell and few programs. The probe walked up to the folder that exists
// with dirname, and where that program is missing it never ended.
func TestTheProbeEndsOnAHostWithFewPrograms(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, home := range map[string]string{
		"a home that is not there":    "/nowhere/at/all",
		"a home without a root":       "nowhere/at/all",
		"a home that is there":        t.TempDir(),
		"no home, but a path of dots": "..",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			bin := t.TempDir()
			for _, tool := range []string{"date", "rm"} {
				path, err := exec.LookPath(tool)
				if err == nil {
					err = os.Symlink(path, filepath.Join(bin, tool))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			p := newHostProbe("/nowhere/records", false)
			c := exec.CommandContext(ctx, sh, "-c", p.script())
			c.Dir, c.Env = t.TempDir(), []string{"PATH=" + bin, "HOME=" + home}
			var errs strings.Builder
			c.Stderr = &errs
			said, err := c.Output()
			if err != nil {
				t.Fatalf("the probe ended with %v after:\n%s", err, said)
			}
			answers, noise := p.answers(string(said))
			if _, ended := answers["end"]; !ended || noise || errs.Len() > 0 {
				t.Errorf("the probe said:\n%s\nand beside it:\n%s", said, errs.String())
			}
			if answers["place"] == "" && os.Geteuid() == 0 {
				t.Error("no place for records was found, and root may write anywhere")
			}
		})
	}
}
