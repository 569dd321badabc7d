package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server/waits"
)

const (
	groupsMax  = 100     // groups of a summary, and one for the rest
	excerptMax = 4 << 10 // bytes of output shown of a group, if nobody asks for more
	excerptAll = 8 << 20 // bytes of output kept of all groups; what is more is read again
	// outputsMax is how many outputs are in memory at once; each is bounded to
	// 128 KiB an attempt.
	outputsMax = 50
	// otherGroups is the outcome of the group that holds the rest.
	otherGroups jobs.Outcome = "other"
)

type (
	summaryInput struct {
		Task    string `path:"task"`
		Excerpt int    `query:"excerpt" minimum:"0" maximum:"163840" default:"4096" doc:"bytes of output shown of a group"`
	}
	summaryOutput struct{ Body api.Summary }
)

// summary folds the jobs of a task that have ended. It reads every output once and
// keeps only its hash, and an excerpt of each group.
func (s *Server) summary(ctx context.Context, in *summaryInput) (*summaryOutput, error) {
	t, past, err := s.taskAt(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	if past {
		sum, err := s.pastSummary(ctx, t, in.Excerpt)
		if err != nil {
			return nil, problem(err)
		}
		return &summaryOutput{sum}, nil
	}
	f := newFolder(in.Excerpt)
	gates, later := 0, s.times.why.Awaits(ctx)
	waiting := s.times.why.Lacks(later)
	err = s.queue.Read.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			if j.Gate != nil && j.Gate.Answer == "" {
				gates++
			}
		}
		if err := errors.Join(later.Add(ctx, t, chunk), waiting.Add(ctx, chunk)); err != nil {
			return err
		}
		ended := slices.DeleteFunc(chunk, func(j jobs.JobInfo) bool { return j.State != jobs.Ended })
		for part := range slices.Chunk(ended, outputsMax) {
			outputs, err := s.outputs(ctx, t.Zones, ids(part))
			if err != nil {
				return err
			}
			for _, j := range part {
				f.add(j, outputs[j.ID], s.stock.Address(j.Host))
			}
		}
		return nil
	})
	if err != nil {
		return nil, problem(err)
	}
	groups, err := s.showGroups(ctx, t.Zones, f)
	if err != nil {
		return nil, problem(err)
	}
	return &summaryOutput{api.Summary{Task: t, Groups: groups, AtGates: gates, Waits: waiting.List(),
		Awaits: later.List()}}, nil
}

// showGroups shows the biggest groups of a folder, and one for the rest.
func (s *Server) showGroups(ctx context.Context, zones []string, f *folder) ([]api.Alike, error) {
	shown, rest := f.biggest(groupsMax)
	out := make([]api.Alike, 0, len(shown)+1)
	for part := range slices.Chunk(shown, outputsMax) {
		var missing []jobs.ID
		for _, g := range part {
			if !g.kept {
				missing = append(missing, g.example.ID)
			}
		}
		outputs, err := s.outputs(ctx, zones, missing)
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

// outputs reads what the hosts of some jobs said, as it is compared. A job does not tell its zone,
// and a look where there is nothing costs little.
func (s *Server) outputs(ctx context.Context, zones []string,
	list []jobs.ID) (map[jobs.ID][]byte, error) {
	all := make(map[jobs.ID][]byte, len(list))
	for _, zone := range zones {
		some, err := s.queue.Read.Outputs.Outputs(ctx, zone, list)
		if err != nil {
			return nil, err
		}
		for id, o := range some {
			all[id] = plain(o.Theirs(), 0)
		}
	}
	return all, nil
}

func ids(list []jobs.JobInfo) []jobs.ID {
	out := make([]jobs.ID, len(list))
	for i, j := range list {
		out[i] = j.ID
	}
	return out
}

// folder puts jobs that ended alike together. Of each job it keeps no more than
// its host's name, of each group the beginning of its output, while there is room.
type folder struct {
	excerpt int // bytes shown of a group
	room    int // bytes of output that may be kept yet
	groups  map[likeness]*group
	order   []*group // in the order of their first job
	count   int      // jobs
}

func newFolder(excerpt int) *folder {
	return &folder{excerpt: excerpt, room: excerptAll, groups: map[likeness]*group{}}
}

// likeness is what the jobs of a group have in common.
type likeness struct {
	outcome jobs.Outcome
	exit    string
	text    [sha256.Size]byte // of the output or, if there is none, the error
	silent  bool
}

// group is the jobs of one likeness.
type group struct {
	hosts   []string
	example jobs.JobInfo // the first one
	words   string       // the error, without what names one host
	size    int          // of the output
	head    []byte       // the beginning of it, if kept
	kept    bool
}

func (f *folder) add(j jobs.JobInfo, output []byte, address string) {
	words := waits.Impersonal(j.Error, j.Host, address)
	like := likeness{outcome: j.Outcome, text: sha256.Sum256(output)}
	if j.ExitCode != nil {
		like.exit = strconv.Itoa(*j.ExitCode)
	}
	if len(output) == 0 {
		like.silent, like.text = true, sha256.Sum256([]byte(words))
	}
	g := f.groups[like]
	if g == nil {
		g = &group{example: j, words: words, size: len(output)}
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

// cut is what is shown of an output.
func (f *folder) cut(output []byte) []byte { return output[:min(len(output), f.excerpt)] }

// biggest sorts the groups, the biggest first, and cuts off what is more than n.
// Of equal ones those come first that did not succeed: they are read.
func (f *folder) biggest(n int) (shown, rest []*group) {
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
		Example: g.example.ID}
}

// merge makes one group of those that are too many, and says so.
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
