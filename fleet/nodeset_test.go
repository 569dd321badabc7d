package fleet_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/fleet"
)

// answerLines is a program that reads the names of all hosts, then one host set a line. It
// answers each with its hosts or with the mistake in it.
const answerLines = `
import sys
from ClusterShell.NodeSet import NodeSet
from ClusterShell.NodeUtils import GroupResolver, GroupSource
names = sys.stdin.readline().split()
resolver = GroupResolver(GroupSource("test", {}, ",".join(names)))
for line in sys.stdin:
    try:
        print("ok", *NodeSet(line.rstrip("\n"), resolver=resolver))
    except Exception as e:
        print("error", str(e).replace("\n", " "))
    sys.stdout.flush()
`

// debianPython is the Python interpreter for which packages of Debian install their modules.
const debianPython = "/usr/bin/python3"

// nodeset runs ClusterShell's own parser of host sets. One process answers all questions
// of a test.
type nodeset struct {
	ask    io.Writer
	answer *bufio.Reader
}

func startNodeset(t *testing.T, hosts []string) *nodeset {
	t.Helper()
	cmd := exec.Command(debianPython, "-c", answerLines)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("nodeset: %v", err)
		}
	})
	if _, err := fmt.Fprintln(in, strings.Join(hosts, " ")); err != nil {
		t.Fatal(err)
	}
	return &nodeset{in, bufio.NewReaderSize(out, 1<<20)}
}

// expand returns the hosts of a host set, or the mistake in it.
func (n *nodeset) expand(set string) (hosts []string, err error) {
	if _, err := fmt.Fprintln(n.ask, set); err != nil {
		return nil, err
	}
	line, err := n.answer.ReadString('\n')
	if err != nil {
		return nil, err
	}
	words := strings.Fields(line)
	if words[0] != "ok" {
		return nil, fmt.Errorf("%s", strings.TrimSpace(line))
	}
	slices.Sort(words[1:])
	return words[1:], nil
}

// needNodeset skips a test if ClusterShell is not installed; make test installs it
// where that is possible.
func needNodeset(t *testing.T) {
	t.Helper()
	if exec.Command(debianPython, "-c", "import ClusterShell").Run() == nil {
		return
	}
	if _, err := os.Stat("/etc/debian_version"); err == nil && os.Getuid() == 0 {
		t.Fatal("ClusterShell is missing: tools/install.sh nodeset")
	}
	t.Skip("ClusterShell is not on this machine")
}

// Random host sets select the same hosts here as in ClusterShell.
func TestHostSetsAreThoseOfClusterShell(t *testing.T) {
	t.Parallel()
	needNodeset(t)
	inv := numbered3(t)
	oracle := startNodeset(t, names(inv.Hosts()))
	rapid.Check(t, func(t *rapid.T) {
		for range 5 {
			set := hostSets().Draw(t, "set")
			want, err := oracle.expand(set)
			if err != nil {
				t.Fatalf("%s: ClusterShell: %v", set, err)
			}
			sel, err := fleet.ParseSelector(set)
			if err != nil {
				t.Fatalf("%s is %v in ClusterShell: %v", set, want, err)
			}
			hosts, err := inv.Select(sel)
			if len(want) == 0 && err != nil && strings.Contains(err.Error(), "picks no host") {
				continue
			}
			if got := names(hosts); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s picks %s, %v; ClusterShell says %s", set, fleet.Fold(got), err,
					fleet.Fold(want))
			}
		}
	})
}

// numbered3 is an inventory with every name that hostSets can generate.
func numbered3(t *testing.T) *fleet.Inventory {
	t.Helper()
	var hosts []fleet.Host
	for _, form := range []string{"fw%d", "fw%02d", "fw%03d", "vpn%d.x", "vpn%02d.x", "vpn%03d.x"} {
		for i := range 21 {
			hosts = append(hosts, plainHost(fmt.Sprintf(form, i)))
		}
	}
	for rack := range 4 {
		for n := range 21 {
			hosts = append(hosts, plainHost(fmt.Sprintf("rack%dn%02d", rack, n)))
		}
	}
	inv, err := fleet.New(unique(hosts))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// hostSets generates host sets such as people write them.
func hostSets() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for i := range rapid.IntRange(1, 6).Draw(t, "operands") {
			if i > 0 {
				b.WriteString(rapid.SampledFrom([]string{",", "!", "&", "^", ", ", " ! ", " &", "^ "}).
					Draw(t, "operator"))
			}
			b.WriteString(operands().Draw(t, "operand"))
		}
		return b.String()
	})
}

func operands() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"fw*", "*", "fw0?1", "vpn?.x", "*.x", "rack*n01", "rack?n1*",
				"fw*1", "fw??", "*[1-3]", "rack*n[01-02]", "fw0?[1-2]", "fw[0-1]?"}).Draw(t, "glob")
		case 1, 2:
			return fmt.Sprintf("rack[%s]n[%s]", numberRanges(1, 3).Draw(t, "rack"),
				numberRanges(2, 20).Draw(t, "n"))
		case 3:
			return fmt.Sprintf("vpn[%s].x", numberRanges(rapid.IntRange(1, 3).Draw(t, "width"), 20).
				Draw(t, "vpn"))
		case 4:
			return fmt.Sprintf("fw%03d", rapid.IntRange(0, 20).Draw(t, "n"))
		}
		return fmt.Sprintf("fw[%s]", numberRanges(rapid.IntRange(1, 3).Draw(t, "width"), 20).
			Draw(t, "fw"))
	})
}

// numberRanges generates texts for between brackets: numbers up to most, padded to at least
// the given number of digits.
func numberRanges(width, most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var parts []string
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			first := rapid.IntRange(0, most).Draw(t, "first")
			last := rapid.IntRange(first, most).Draw(t, "last")
			part := fmt.Sprintf("%0*d", width, first)
			if rapid.Bool().Draw(t, "range") {
				part += fmt.Sprintf("-%0*d", width, last)
				if rapid.IntRange(0, 2).Draw(t, "stepped") == 0 {
					part += fmt.Sprintf("/%d", rapid.IntRange(1, 5).Draw(t, "step"))
				}
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ",")
	})
}
