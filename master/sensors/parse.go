package sensors

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster/master/governor"
)

// parseNumber reads one whole number that is not negative.
func parseNumber(text string) (float64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q: want a whole number", text)
	}
	return float64(n), nil
}

// unlimited is the number from which a limit of a control group of version 1 means none.
const unlimited = 1 << 60

// parseLimit reads a limit of a control group; 0: none.
func parseLimit(text string) (float64, error) {
	if strings.TrimSpace(text) == "max" {
		return 0, nil
	}
	n, err := parseNumber(text)
	if n >= unlimited {
		return 0, nil
	}
	return n, err
}

// parseLoad reads the load of the last minute.
func parseLoad(text string) (float64, error) {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return parseShare(word)
}

// parseShare reads a number with a fraction that is not negative.
func parseShare(word string) (float64, error) {
	n, err := strconv.ParseFloat(word, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return 0, fmt.Errorf("%.40q: want a number of 0 or more", word)
	}
	return n, nil
}

// parseThreads reads the number of threads of the machine from loadavg: 0.20 0.18 0.12 1/80 9.
func parseThreads(text string) (float64, error) {
	words := strings.Fields(text)
	if len(words) < 4 {
		return 0, errors.New("loadavg: want four words or more")
	}
	_, all, _ := strings.Cut(words[3], "/")
	return parseNumber(all)
}

// parseMemory reads how much memory can be used without swapping, and all of it.
func parseMemory(text string) (free, total float64, err error) {
	found := 0
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		to := map[string]*float64{"MemTotal": &total, "MemAvailable": &free}[name]
		if to == nil {
			continue
		}
		n, err := parseNumber(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", name, err)
		}
		*to = n * 1024
		found++
	}
	if found != 2 {
		return 0, 0, errors.New("want the lines MemTotal and MemAvailable")
	}
	return free, total, nil
}

// parsePressure reads the percent of the last ten seconds in which all work waited.
func parsePressure(text string) (float64, error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "full" {
			continue
		}
		word, is := strings.CutPrefix(words[1], "avg10=")
		if !is {
			return 0, fmt.Errorf("%.40q: want avg10=", words[1])
		}
		return parseShare(word)
	}
	return 0, errors.New("want a line that begins with full")
}

// parseFiles reads how many files can still be opened, and how many at all: 3496 0 9223372.
func parseFiles(text string) (free, total float64, err error) {
	words := strings.Fields(text)
	if len(words) != 3 {
		return 0, 0, errors.New("want three numbers")
	}
	used, err := parseNumber(words[0])
	if err != nil {
		return 0, 0, err
	}
	total, err = parseNumber(words[2])
	return max(0, total-used), total, err
}

// parseReclaimable reads the bytes that memory.stat counts as files, and as memory of the kernel
// that it can give up, also of groups below; 0: it does not say.
func parseReclaimable(text string) float64 {
	found := map[string]float64{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 2 {
			continue
		}
		switch name := strings.TrimPrefix(words[0], "total_"); name {
		case "inactive_file", "active_file", "slab_reclaimable":
			if n, err := parseNumber(words[1]); err == nil {
				found[name] = max(found[name], n)
			}
		}
	}
	return found["inactive_file"] + found["active_file"] + found["slab_reclaimable"]
}

// A mount is where the control groups of some controllers are.
type mount struct {
	root  string // the group that is seen at point
	point string
	two   bool
	of    []string // controllers, of version 1
}

// parseMounts reads the mounts of control groups from mountinfo. Lines of another form, and those
// of other file systems, do not count.
func parseMounts(text string) []mount {
	var all []mount
	for line := range strings.Lines(text) {
		before, after, is := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !is || len(left) < 5 || len(right) < 3 {
			continue
		}
		m := mount{root: unescape(left[3]), point: unescape(left[4])}
		switch right[0] {
		case "cgroup2":
			m.two = true
		case "cgroup":
			m.of = strings.Split(right[2], ",")
		default:
			continue
		}
		all = append(all, m)
	}
	return all
}

// unescape reads a path of mountinfo, in which a blank is \040.
func unescape(s string) string {
	for _, pair := range [][2]string{{`\040`, " "}, {`\011`, "\t"}, {`\012`, "\n"}, {`\134`, `\`}} {
		s = strings.ReplaceAll(s, pair[0], pair[1])
	}
	return s
}

// A place is the folder of a group.
type place struct {
	dir, root string
	two       bool
	of        []governor.Kind
}

// parseGroups reads in which groups a process is, and returns their folders: 4:memory:/a, 0::/b.
func parseGroups(text string, mounts []mount) []place {
	kinds := map[string]governor.Kind{"memory": governor.Memory, "pids": governor.Pids}
	var all []place
	for line := range strings.Lines(text) {
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(words) != 3 || !strings.HasPrefix(words[2], "/") {
			continue
		}
		controllers := strings.Split(words[1], ",")
		for _, m := range mounts {
			p := place{root: filepath.Clean(m.point), two: m.two}
			for controller, kind := range kinds {
				switch {
				case m.two && words[1] == "":
					p.of = append(p.of, kind)
				case !m.two && slices.Contains(controllers, controller) && slices.Contains(m.of, controller):
					p.of = append(p.of, kind)
				}
			}
			if len(p.of) == 0 {
				continue
			}
			slices.Sort(p.of)
			below, err := filepath.Rel(m.root, words[2])
			if err != nil || below == ".." || strings.HasPrefix(below, "../") {
				below = "." // the group is outside of what this container sees
			}
			p.dir = filepath.Join(p.root, below)
			all = append(all, p)
		}
	}
	return all
}
