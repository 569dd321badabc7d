package proc

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOOMCounterIsFound(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"version 2", map[string]string{
			"proc/self/cgroup":                        "0::/sys.slice/m\n",
			"sys/fs/cgroup/sys.slice/m/memory.events": "oom_kill 3\n",
			"proc/vmstat":                             "oom_kill 4\n",
		}, "sys/fs/cgroup/sys.slice/m/memory.events"},
		{"version 1", map[string]string{
			"proc/self/cgroup":                          "9:name=systemd:/\n4:cpu,memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill_disable 0\noom_kill 3\n",
			"proc/vmstat":                               "oom_kill 4\n",
		}, "sys/fs/cgroup/memory/a/memory.oom_control"},
		{"a container that sees its group as the root", map[string]string{
			"proc/self/cgroup":                  "0::/docker/x\n",
			"sys/fs/cgroup/memory.events.local": "low 0\noom_kill 3\n",
		}, "sys/fs/cgroup/memory.events.local"},
		{"the machine's", map[string]string{
			"proc/self/cgroup": "0::/\n",
			"proc/vmstat":      "pgfault 77\noom_kill 4\n",
		}, "proc/vmstat"},
		{"none", nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for name, text := range test.files {
				write(t, root, name, text)
			}
			want := test.want
			if want != "" {
				want = filepath.Join(root, want)
			}
			if diff := cmp.Diff(want, newOOMCounter(root).path); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOOMIsClaimedOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "proc/vmstat", "oom_kill 4\n")
	c := newOOMCounter(root)
	var got []bool
	claim := func(times int) {
		for range times {
			got = append(got, c.claim())
		}
	}
	claim(1) // nothing happened
	write(t, root, "proc/vmstat", "oom_kill 6\n")
	claim(3) // two of three
	write(t, root, "proc/vmstat", "oom_kill 9\n")
	c.refresh()
	claim(1) // those were others
	if want := []bool{false, true, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("claims %v, want %v", got, want)
	}
}

func TestOOMOfThisMachine(t *testing.T) {
	t.Parallel()
	if c := newOOMCounter("/"); c.path == "" {
		t.Error("no counter found: a child that ran out of memory would only be called killed")
	}
}

func FuzzOOMFiles(f *testing.F) {
	f.Add([]byte("0::/a\n4:memory:/b\n"))
	f.Add([]byte("::::\n\n:"))
	f.Fuzz(func(t *testing.T, own []byte) {
		files := oomFiles(own)
		if files[len(files)-1] != "proc/vmstat" {
			t.Errorf("%q", files)
		}
	})
}
