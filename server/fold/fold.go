// Package fold puts the jobs of a task that ended alike into groups, for a summary: the same
// outcome, exit code and output, or the same error but for the name and address of the host.
// Nothing in it reads or waits.
package fold

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

const (
	// GroupsMax bounds the groups of a summary; one more holds the rest.
	GroupsMax = 100
	// OutputsMax bounds the outputs in memory at once; each has at most 128 KiB an attempt.
	OutputsMax = 50

	excerptAll = 8 << 20 // bytes of output kept of all groups; what is more is read again
	// otherGroups is the outcome of the group that holds the rest.
	otherGroups jobs.Outcome = "other"
)

// A Folder puts jobs that ended alike together. Of each job it keeps no more than
// its host's name, of each group the beginning of its output, while there is room.
type Folder struct {
	excerpt int // bytes shown of a group
	room    int // bytes of output that may be kept yet
	groups  map[likeness]*group
	order   []*group // in the order of their first job
	count   int      // jobs
}

// New makes a folder that shows so many bytes of the output of a group.
func New(excerpt int) *Folder {
	return &Folder{excerpt: excerpt, room: excerptAll, groups: map[likeness]*group{}}
}

// Count returns how many jobs were added.
func (f *Folder) Count() int { return f.count }

// A likeness holds the properties that the jobs of a group have in common.
type likeness struct {
	outcome jobs.Outcome
	exit    string
	text    [sha256.Size]byte // of the output or, if there is none, the error
	silent  bool
	proof   api.Proof // none: not proven; else empty
}

// A group is the jobs of one likeness.
type group struct {
	hosts   []string
	example jobs.JobInfo // the first one
	words   string       // the error, without what names one host
	proof   api.Proof
	size    int    // of the output
	head    []byte // the beginning of it, if kept
	kept    bool
}

// Add puts a job that has ended into its group, with what its host said and the address of the
// host as errors name it.
func (f *Folder) Add(j jobs.JobInfo, output []byte, address string) {
	words := Impersonal(j.Error, j.Host, address)
	like := likeness{outcome: j.Outcome, text: sha256.Sum256(output)}
	if j.ExitCode != nil {
		like.exit = strconv.Itoa(*j.ExitCode)
	}
	if len(output) == 0 {
		like.silent, like.text = true, sha256.Sum256([]byte(words))
	}
	if api.IsWithoutProof(j.Note) {
		like.proof = api.NotProven
	}
	g := f.groups[like]
	if g == nil {
		g = &group{example: j, words: words, size: len(output), proof: like.proof}
		if head := f.cut(output); len(head) <= f.room {
			g.head, g.kept = slices.Clone(head), true
			f.room -= len(head)
		}
		f.groups[like] = g
		f.order = append(f.order, g)
	}
	g.hosts = append(g.hosts, j.Host)
	f.count++
}

// cut returns the part of an output that is shown.
func (f *Folder) cut(output []byte) []byte { return output[:min(len(output), f.excerpt)] }

// fingerprint matches that of a host key in an error.
var fingerprint = regexp.MustCompile(`SHA256:[A-Za-z0-9+/]{43}`)

// Impersonal takes the names, addresses and keys of one host out of an error, so that hosts with
// the same trouble have the same text.
func Impersonal(text, host, address string) string {
	if text == "" {
		return ""
	}
	if address != "" {
		text = strings.ReplaceAll(text, address, "ADDRESS")
	}
	if len(host) > 2 { // a host may be called "a"
		text = strings.ReplaceAll(text, host, "HOST")
	}
	return fingerprint.ReplaceAllString(text, "SHA256:…")
}

// Groups returns the biggest groups, at most so many, and one for the rest. It calls read for
// the outputs of jobs whose beginning was not kept.
func (f *Folder) Groups(most int, read func([]jobs.ID) (map[jobs.ID][]byte, error)) ([]api.Alike,
	error) {
	shown, rest := f.biggest(most)
	out := make([]api.Alike, 0, len(shown)+1)
	for part := range slices.Chunk(shown, OutputsMax) {
		var missing []jobs.ID
		for _, g := range part {
			if !g.kept {
				missing = append(missing, g.example.ID)
			}
		}
		outputs, err := read(missing)
		if err != nil {
			return nil, err
		}
		for _, g := range part {
			head := g.head
			if !g.kept {
				head = f.cut(outputs[g.example.ID])
			}
			out = append(out, g.show(head))
		}
	}
	if len(rest) > 0 {
		out = append(out, merge(rest))
	}
	return out, nil
}

// biggest sorts the groups, the biggest first, and cuts them off after n. Of groups of the same
// size those that did not succeed come first, because people read them.
func (f *Folder) biggest(n int) (shown, rest []*group) {
	slices.SortStableFunc(f.order, func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(b.hosts), len(a.hosts)), cmp.Compare(a.rank(), b.rank()))
	})
	n = min(n, len(f.order))
	return f.order[:n], f.order[n:]
}

func (g *group) rank() int {
	if g.example.Outcome == jobs.Succeeded {
		return 1
	}
	return 0
}

func (g *group) show(head []byte) api.Alike {
	words := g.words
	if len(g.hosts) == 1 {
		words = g.example.Error
	}
	return api.Alike{Outcome: g.example.Outcome, ExitCode: g.example.ExitCode, Count: len(g.hosts),
		Hosts: fleet.Fold(g.hosts), Error: words, Output: head, LeftOut: g.size - len(head),
		Example: g.example.ID, Proof: g.proof}
}

// merge makes one group, which says so, of the groups beyond the limit.
func merge(rest []*group) api.Alike {
	out := api.Alike{Outcome: otherGroups}
	counts := jobs.NewCounts()
	var hosts []string
	for _, g := range rest {
		hosts = append(hosts, g.hosts...)
		counts[g.example.Outcome] += len(g.hosts)
	}
	var parts []string
	for _, o := range jobs.Outcomes() {
		if counts[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[o], o))
		}
	}
	out.Count, out.Hosts = len(hosts), fleet.Fold(hosts)
	out.Error = fmt.Sprintf("%d more groups, none bigger than those shown: %s",
		len(rest), strings.Join(parts, ", "))
	return out
}
