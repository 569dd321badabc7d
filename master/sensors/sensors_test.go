package sensors

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/master/governor"
)

// This machine can be measured, without an error.
func TestThisMachineIsMeasured(t *testing.T) {
	t.Parallel()
	all, err := Machine{Root: "/", Dirs: []string{t.TempDir(), "/no/such/folder"}, Core: 1}.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []governor.Kind{governor.Load, governor.Memory, governor.Disk, governor.Pids, governor.Files} {
		if !slices.ContainsFunc(all, func(r governor.Reading) bool { return r.Kind == k }) {
			t.Errorf("no %s among %+v", k, all)
		}
	}
	for _, r := range all {
		if r.Value < 0 || r.Total < 0 || r.Total > 0 && r.Value > r.Total {
			t.Errorf("%+v", r)
		}
	}
}

// machine makes a pretended machine of files.
func machine(t *testing.T, all map[string]string) Machine {
	t.Helper()
	root := t.TempDir()
	for path, text := range all {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Machine{Root: root, Core: 2}
}

const (
	mountsOne = "36 25 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"37 25 0:32 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
		"38 25 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n25 1 8:1 / / rw - ext4 /dev/sda rw\n"
	mountsTwo = "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
)

// The limits of control groups of both versions hold, those of the groups above too.
func TestControlGroupsAreMeasured(t *testing.T) {
	t.Parallel()
	const one, two = "sys/fs/cgroup/memory/a", "sys/fs/cgroup/sys.slice"
	for name, c := range map[string]struct {
		files map[string]string
		want  []governor.Reading
	}{
		"version 1": {map[string]string{
			"proc/self/cgroup": "4:memory:/a/b\n8:pids:/\n0::/\n", "proc/self/mountinfo": mountsOne,
			one + "/b/memory.limit_in_bytes": "9223372036854771712\n", one + "/b/memory.usage_in_bytes": "1\n",
			one + "/memory.limit_in_bytes": "1000\n", one + "/memory.usage_in_bytes": "900\n",
			one + "/memory.stat": "cache 400\ntotal_inactive_file 300\n",
		}, []governor.Reading{{Kind: governor.Memory, Where: "/" + one, Value: 400, Total: 1000}}},
		"version 2": {map[string]string{
			"proc/self/cgroup": "0::/sys.slice/muster.service\n", "proc/self/mountinfo": mountsTwo,
			two + "/muster.service/pids.max": "512\n", two + "/muster.service/pids.current": "12\n",
			two + "/muster.service/memory.max": "max\n", two + "/muster.service/memory.current": "7\n",
			two + "/pids.max": "600\n", two + "/pids.current": "601\n",
		}, []governor.Reading{{Kind: governor.Pids, Where: "/" + two + "/muster.service", Value: 500, Total: 512},
			{Kind: governor.Pids, Where: "/" + two, Value: 0, Total: 600}}},
		"a container": {map[string]string{
			"proc/self/cgroup": "0::/../../x\n", "proc/self/mountinfo": mountsTwo,
			"sys/fs/cgroup/pids.max": "10\n", "sys/fs/cgroup/pids.current": "3\n",
		}, []governor.Reading{{Kind: governor.Pids, Where: "/sys/fs/cgroup", Value: 7, Total: 10}}},
		"none": {nil, nil},
	} {
		got, err := machine(t, c.files).Read()
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// A file that cannot be understood is named; the others count.
func TestAnUnreadableFileIsNamed(t *testing.T) {
	t.Parallel()
	all, err := machine(t, map[string]string{"proc/loadavg": "4.00 1 1 1/80 99\n", "proc/meminfo": "MemTotal: x kB\n",
		"proc/pressure/memory": "some avg10=1.0\nfull avg10=-3\n", "proc/sys/fs/file-nr": "1 2\n",
		"proc/sys/kernel/pid_max": "100\n", "proc/sys/kernel/threads-max": "many\n"}).Read()
	if want := []governor.Reading{{Kind: governor.Load, Value: 2}}; !slices.Equal(all, want) {
		t.Errorf("got %+v, want %+v", all, want)
	}
	for _, part := range []string{"/proc/meminfo: MemTotal", "/proc/pressure/memory: ",
		"/proc/sys/fs/file-nr: want three", "threads-max: \"many"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q in it", err, part)
		}
	}
}

// No text of the kernel, however broken, makes a parser panic or find a number that is none.
func FuzzParsers(f *testing.F) {
	for _, s := range []string{"", "0.20 0.18 0.12 1/80 11206\n", "MemTotal: 1 kB\nMemAvailable: 2 kB\n",
		"full avg10=0.00 x\n",
		"1\t0\t9223372036854775807\n", "max\n", "4:memory:/a\n0::/../x\n8:pids,memory:/\n", mountsOne, mountsTwo,
		"1 2 3 /a\\040b /m\\134 - cgroup2 x y", "full avg10=NaN", "total_inactive_file 18446744073709551615\n"} {
		f.Add(s)
	}
	sound := func(t *testing.T, err error, all ...float64) {
		for _, n := range all {
			if err == nil && (n < 0 || math.IsNaN(n) || math.IsInf(n, 0)) {
				t.Errorf("%v is no number of anything", n)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseLoad(text)
		sound(t, err, n)
		n, err = parseThreads(text)
		sound(t, err, n)
		n, err = parsePressure(text)
		sound(t, err, n)
		n, err = parseLimit(text)
		sound(t, err, n)
		free, total, err := parseMemory(text)
		sound(t, err, free, total)
		free, total, err = parseFiles(text)
		sound(t, err, free, total)
		sound(t, nil, parseReclaimable(text))
		for _, with := range []string{mountsOne, mountsTwo, text} {
			for _, p := range parseGroups(text, parseMounts(with)) {
				if p.dir != p.root && !strings.HasPrefix(p.dir, strings.TrimSuffix(p.root, "/")+"/") {
					t.Errorf("%q is not below %q", p.dir, p.root)
				}
			}
		}
	})
}
