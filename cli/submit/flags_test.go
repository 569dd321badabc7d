package submit

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/jobs"
	"muster/testkit/apitest"
)

func TestSubmitBody(t *testing.T) {
	t.Parallel()
	zurich, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, zurich)
	f := RunFlags{On: "role=fw", id: apitest.ATask, expire: "90m", at: "2026-12-01 02:00", dry: true,
		Args:  []string{"cmd=echo a=b; $(x) 'q'\n-n", "empty=", "dash=-rf"},
		files: []string{"rules=/etc/rules", "none=/dev/null"}}
	got, err := f.Submit("firewall", now, func(path string) ([]byte, error) {
		if path == "/dev/null" {
			return []byte{}, nil
		}
		return []byte("content of " + path), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := api.Submit{ID: apitest.ATask, Runbook: "firewall", On: "role=fw", Expire: "90m", DryRun: true,
		At:    jobs.Time{Time: time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC)},
		Args:  map[string]string{"cmd": "echo a=b; $(x) 'q'\n-n", "empty": "", "dash": "-rf"},
		Files: map[string][]byte{"rules": []byte("content of /etc/rules"), "none": {}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSubmitBodyReportsAllMistakes(t *testing.T) {
	t.Parallel()
	f := RunFlags{id: "X", expire: "soon", at: "tomorrow", Args: []string{"cmd", "=x", "a=1", "a=2"},
		files: []string{"f=/no/such/file", "a=/dev/null", "g"}}
	_, err := f.Submit("exec", time.Now(), func(string) ([]byte, error) { return nil, os.ErrNotExist })
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{"no hosts are named", `--id: task id "X"`, `--expire "soon"`, `--at "tomorrow"`,
		`--arg "cmd": want name=value`, `--arg "=x": there is no name`, `--arg "a": this argument was given already`,
		"--arg-file f: file does not exist", `--arg-file "a": this argument was given already`, `--arg-file "g": want`}
	apitest.WantParts(t, "the error", err.Error(), want...)
	if n := strings.Count(err.Error(), "\n") + 1; n != len(want) {
		t.Errorf("%d lines, want %d:\n%v", n, len(want), err)
	}
}
