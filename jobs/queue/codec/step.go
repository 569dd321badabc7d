package codec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/jobs"
)

// knownMax bounds the tasks that a caller may name as known.
const knownMax = 64

// Known encodes the tasks whose spec a caller has, for step.lua.
func Known(tasks []jobs.TaskID) string {
	var b strings.Builder
	for i, t := range tasks {
		if i == knownMax {
			break
		}
		b.WriteString(string(t))
		b.WriteByte(' ')
	}
	return b.String()
}

// AppendResult appends the arguments of step.lua for a result, with the proof of its node; empty:
// none. Nearly all results only say that a job ended, and those have few arguments, because Redis
// converts each of them to a string.
func AppendResult(args []any, r jobs.Result, proof string) []any {
	exit := ""
	if r.ExitCode != nil {
		exit = strconv.Itoa(*r.ExitCode)
	}
	if r.Kind == jobs.KindEnd && r.Class == "" && r.Error == "" && r.Note == "" && !r.KeepLock &&
		len(r.Output) == 0 && r.Gap.Left == 0 {
		return append(args, string(r.Job), int64(r.Token), "ended", string(r.Outcome), exit,
			withProof(r.Spent, proof))
	}
	saved := r.Saved
	if r.Kind == jobs.KindEnd {
		saved = OneLine(r.Note) // a job that has ended has no use for saved data
	}
	return append(args, string(r.Job), int64(r.Token), string(r.Kind), string(r.Outcome),
		string(r.Class), exit, OneLine(r.Error), r.Delay.Microseconds(), int64(r.Until), r.Step,
		saved, r.Release, r.KeepLock, SaidOf(r), withProof(r.Spent, proof))
}

// ReadReply reads the answer of step.lua.
func ReadReply(r Reader) (jobs.Reply, error) {
	reply := jobs.Reply{Status: jobs.Status(r.Text()), Now: r.Micros()}
	if reply.Status == Absent {
		return reply, errors.New("the zone vanished again at once")
	}
	reply.Next = r.Micros()
	for n := r.Int(); n > 0 && r.Err == nil; n-- {
		reply.Late = append(reply.Late, jobs.ID(r.Text()))
	}
	for n := r.Int(); n > 0 && r.Err == nil; n-- {
		g, unread, err := ReadGrant(r.Text(), r.Text())
		if r.Err == nil && err != nil {
			return reply, err
		}
		reply.Jobs = append(reply.Jobs, g)
		note(&reply, string(g.Job), unread)
	}
	for len(r.Left) > 0 && r.Err == nil {
		task, text := r.Text(), r.Text()
		spec, err := ReadSpec(text)
		if reply.Specs == nil {
			reply.Specs = map[jobs.TaskID]jobs.Spec{}
		}
		reply.Specs[jobs.TaskID(task)] = spec
		note(&reply, task, err)
	}
	return reply, r.Err
}

// note notes why something in an answer cannot be read. That is no error of the call, which the
// worker would repeat for ever.
func note(r *jobs.Reply, what string, why error) {
	if why == nil {
		return
	}
	if r.Unread == nil {
		r.Unread = map[string]string{}
	}
	r.Unread[what] = why.Error()
}

// grantFields is the number of tab-separated parts of a grant; see step.lua.
const grantFields = 14

// ReadGrant reads a grant: a job that was handed out, and its host. It says separately why the host
// cannot be read.
func ReadGrant(text, host string) (g jobs.Grant, unread, err error) {
	parts := strings.SplitN(text, "\t", grantFields)
	if len(parts) != grantFields {
		return g, nil, fmt.Errorf("grant has %d parts, want %d", len(parts), grantFields)
	}
	r := words{left: parts}
	g = jobs.Grant{Job: jobs.ID(r.text()), Token: jobs.Token(r.micros()), Mode: jobs.Mode(r.text()),
		Attempt: r.int(), Tries: r.int(), Probes: r.int(), Crashes: r.int(), Step: r.int(),
		Due: r.micros(), Timeout: r.duration(), Bound: r.duration(), LostNode: r.text(),
		Spent: r.text(), Saved: r.text()}
	g.Spent, _ = cutProof(g.Spent) // scripts of an earlier server keep both
	if g.Mode != jobs.ModeLost {
		g.LostNode = ""
	}
	if r.err != nil {
		return g, nil, fmt.Errorf("grant of %s: %w", parts[0], r.err)
	}
	if host != "" {
		g.Host, unread = readHost(host)
	}
	return g, unread, nil
}

// words takes the parts of a text in order, as Reader does with an answer, but without allocating
// each part: those allocations were two thirds of the cost of a job here.
type words struct {
	left []string
	err  error
}

func (w *words) text() string {
	word := w.left[0]
	w.left = w.left[1:]
	return word
}

func (w *words) micros() jobs.Micros {
	m, err := jobs.ParseMicros(w.text())
	if err != nil && w.err == nil {
		w.err = err
	}
	return m
}

func (w *words) int() int { return int(w.micros()) }

func (w *words) duration() time.Duration { return time.Duration(w.micros()) * time.Microsecond }

// Holding returns the grants that hold their hosts. A grant that only looks at a host holds
// nothing.
func Holding(list []jobs.Grant) []jobs.Grant {
	looks := func(g jobs.Grant) bool { return g.Mode.Looks() }
	if !slices.ContainsFunc(list, looks) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), looks)
}
