package attempt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file keeps two members of a redundancy group from being disturbed at once also where
// Redis has forgotten one of them (design §10, G6). Before the first step of a job that
// disturbs its host every member of the group gets a marker, the host itself too, in the
// order of their names: so of two jobs one meets the other, whatever each of them believes.
// A member that cannot be asked is a doubt, and nothing starts in doubt: that one member is
// not there is no time to disturb the other.

// Kin is how a worker learns who is in a redundancy group, and what became of a job that
// wanted one for itself.
type Kin interface {
	// Kin are the groups of a zone in an inventory, each with the names of its hosts, sorted.
	Kin(ctx context.Context, zone, version string) (map[string][]string, error)

	// Hosts reads hosts of a zone in an inventory.
	Hosts(ctx context.Context, zone, version string, names []string) ([]fleet.Host, error)

	// Fate tells what the queue knows of a job, and when its group was cleared.
	Fate(ctx context.Context, zone, group string, id jobs.ID) (jobs.Standing, error)
}

const (
	// markKeep is for how long a marker says something of a job that the queue has forgotten.
	// So long Redis keeps what has ended, and so long a person has to look at the group.
	markKeep = 24 * time.Hour

	// markRenew is how old markers become before they are written again.
	markRenew = 12 * time.Hour

	// markTime is how long the members may take to have their markers taken away.
	markTime = 10 * time.Second

	// markTurns is how often a member is asked whose marker was replaced by another one
	// between two questions.
	markTurns = 3
)

// groupMarks are the markers of an attempt on the members of its group.
type groupMarks struct {
	at     *Attempt
	held   bool            // the attempt did not begin because of the group
	unused bool            // they were written by this attempt, and no step was begun since
	others map[string]Conn // connections to the other members
}

// groups keeps who is in which group. The attempts of a worker share it.
type groups struct {
	mu            sync.Mutex
	zone, version string
	kin           map[string][]string
}

// members are the hosts of the group of a host, in the order of their names.
func (g *groupMarks) members(ctx context.Context) ([]fleet.Host, error) {
	own, version := *g.at.grant.Host, g.at.plan.Spec.Inventory
	if g.at.env.Kin == nil {
		return nil, errors.New("there is nobody to ask")
	}
	names, err := g.at.env.groups.namesOf(ctx, g.at.env.Kin, groupName{g.at.zone, version,
		own.Group})
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == own.Name })
	var hosts []fleet.Host
	if len(names) > 0 {
		if hosts, err = g.at.env.Kin.Hosts(ctx, g.at.zone, version, names); err != nil {
			return nil, err
		}
	}
	hosts = append(hosts, own)
	slices.SortFunc(hosts, func(x, y fleet.Host) int {
		if x.Name < y.Name {
			return -1
		}
		return 1
	})
	return hosts, nil
}

// namesOf returns the names of the hosts of a group, sorted.
func (s *groups) namesOf(ctx context.Context, kin Kin, g groupName) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kin == nil || s.zone != g.zone || s.version != g.version {
		all, err := kin.Kin(ctx, g.zone, g.version)
		if err != nil {
			return nil, err
		}
		s.kin, s.zone, s.version = all, g.zone, g.version
	}
	return s.kin[g.group], nil
}

// A groupName names a group of a zone in a version of the inventory.
type groupName struct{ zone, version, group string }

// claims tells whether a step must not start before every member of the group carries the
// marker of its job.
func (g *groupMarks) claims(action scripts.Action) bool {
	h := g.at.grant.Host
	if h == nil || h.Group == "" || !g.at.plan.Spec.Disruptive || !g.at.disturbs(action) {
		return false
	}
	old := time.Duration(g.at.grant.Token-g.at.memory.Marked) * time.Microsecond
	return g.at.memory.Marked == 0 || old > markRenew
}

// claim sees to it that the group is this job's, or says why the step must not start.
func (g *groupMarks) claim(ctx context.Context, action scripts.Action) ruling {
	if !g.claims(action) || verdict.StoppedBy(g.at.halt.ctx) != nil {
		return ruling{ok: true} // who is cancelled starts nothing
	}
	defer g.at.on(jobs.Queueing)() // the markers are a lock
	group := g.at.grant.Host.Group
	members, err := g.members(ctx)
	if err != nil {
		return ruling{soon: true, group: true,
			why: fmt.Sprintf("who is in group %s is not known: %s", group, verdict.OneLine(err.Error()))}
	}
	first := g.at.memory.Marked == 0
	for i, h := range members {
		why, taken := g.take(ctx, h)
		if why == "" || !first && !taken {
			continue // of one that could not be asked again it was known before
		}
		if first {
			g.giveUp(ctx, members[:i])
		}
		return ruling{soon: true, group: true, why: fmt.Sprintf("group %s: %s", group, why)}
	}
	g.at.memory.Marked, g.unused = g.at.grant.Token, first
	return ruling{ok: true}
}

// take writes the marker on one member. Else it says why not, and whether that is because
// of another job.
func (g *groupMarks) take(ctx context.Context, h fleet.Host) (why string, taken bool) {
	if !verdict.KeepsRecords(&h) {
		return "", false // it can carry none, and the plan of the task said so
	}
	m := g.marker()
	for range markTurns {
		made, err := g.mark(ctx, h, m)
		switch {
		case verdict.Asked(err) == remote.KindBusy:
			return fmt.Sprintf("%s could not be marked now, it is tried again: %s", h.Name,
				verdict.Reason(err)), false
		case err != nil:
			return fmt.Sprintf("%s could not be marked, and as long as one member cannot be asked no other "+
				"is disturbed: %s. If it is gone for good take it out of the group", h.Name,
				verdict.Reason(err)), false
		case made.Other == nil:
			return "", false
		}
		if why = g.stands(ctx, h, *made.Other); why != "" {
			return why, true
		}
		m.Over = *made.Other
	}
	return why, true
}

// marker is that of this job.
func (g *groupMarks) marker() remote.Marker {
	token := int64(g.at.grant.Token)
	return remote.Marker{Group: g.at.grant.Host.Group, Host: g.at.grant.Host.Name,
		Job:   string(g.at.grant.Job),
		Token: token, Until: token + markKeep.Microseconds()}
}

// mark tells a member of a marker, over the connection that there is.
func (g *groupMarks) mark(ctx context.Context, h fleet.Host, m remote.Marker) (remote.Marking,
	error) {
	conn := g.others[h.Name]
	if h.Name == g.at.grant.Host.Name {
		conn = g.at.conn
	}
	if conn != nil {
		made, err := conn.Mark(ctx, m)
		if err == nil || !m.Off {
			return made, err
		}
	}
	conn, err := g.at.secrets.dial(ctx, g.at.env.Dial, h)
	if err != nil {
		return remote.Marking{}, err
	}
	if g.others == nil {
		g.others = map[string]Conn{}
	}
	if before := g.others[h.Name]; before != nil {
		before.Close()
	}
	g.others[h.Name] = conn
	return conn.Mark(ctx, m)
}

// leaveOthers ends the connections to the other members.
func (g *groupMarks) leaveOthers() {
	for _, conn := range g.others {
		conn.Close()
	}
	g.others = nil
}

// stands says why the marker of another job counts; empty: it does not, by what the queue
// knows of that.
func (g *groupMarks) stands(ctx context.Context, h fleet.Host, o remote.Marked) string {
	by, what := remote.Name(o.Job), remote.Name(o.Host) // a host said so
	id, err := jobs.ParseID(o.Job)
	if err != nil {
		id = jobs.NewID(g.at.grant.Job.Task(), "-") // of nobody: what counts is the clear
	}
	fate, err := g.at.env.Kin.Fate(ctx, g.at.zone, g.at.grant.Host.Group, id)
	if err != nil {
		return fmt.Sprintf("%s carries the marker of job %s, and it is not known what became of that: %s",
			h.Name, by, verdict.OneLine(err.Error()))
	}
	if why := counts(o, fate, g.at.grant); why != "" {
		return fmt.Sprintf("%s carries the marker of job %s, which disturbs %s: %s", h.Name, by,
			what, why)
	}
	return ""
}

// counts says why a marker that a host carries still counts against another job, by what
// the queue knows of its own. Of what it forgot a person, or a day, decides.
func counts(o remote.Marked, f jobs.Standing, g jobs.Grant) string {
	cleared := f.Cleared > jobs.Micros(o.Token)
	hint := fmt.Sprintf("look at the hosts, then `muster group clear %s --reason …`", g.Host.Group)
	switch {
	case f.State == jobs.Ended && f.Outcome == jobs.Unknown && !cleared:
		return "it ended unknown: " + hint
	case f.State == jobs.Ended:
		return ""
	case f.State != "":
		return "it has not ended"
	case cleared, int64(g.Token) >= o.Until:
		return ""
	}
	return "Redis has forgotten it, and nobody knows how it ended: " + hint
}

// unmark takes the markers away when the job has ended and it is known how, or if nothing
// was begun under them. What cannot be taken away is replaced by the next job.
func (g *groupMarks) unmark(ctx context.Context, r jobs.Result) jobs.Result {
	ends := r.Kind == jobs.KindEnd && r.Outcome != jobs.Unknown && !r.KeepLock
	if g.at.memory.Marked == 0 || !ends && !g.unused {
		return r
	}
	members, err := g.members(ctx)
	if err != nil {
		g.at.env.Log.Info("the markers of a group stay", "job", g.at.grant.Job, "error", err)
		return r
	}
	if !g.giveUp(ctx, members) || r.Kind == jobs.KindEnd {
		return r
	}
	m := verdict.Recall(r.Saved)
	m.Marked = 0
	r.Saved = m.Replacing(verdict.ToldQueue)
	// Steps before may have been done, but none that disturbs: nobody need wait for the group.
	r.Release = r.Release || r.Kind == jobs.KindDefer && g.unused && !g.at.disturbed() &&
		m.Probe == nil && !verdict.MayHaveRun(g.at.grant)
	return r
}

// giveUp takes the markers of this job away. It is false if one may still be there.
func (g *groupMarks) giveUp(ctx context.Context, members []fleet.Host) (all bool) {
	ctx, cancel := context.WithTimeout(ctx, min(markTime, max(g.at.lease.left(), 0)))
	defer cancel()
	m := g.marker()
	m.Off, all = true, true
	for _, h := range members {
		if !verdict.KeepsRecords(&h) {
			continue
		}
		if _, err := g.mark(ctx, h, m); err != nil {
			g.at.env.Log.Info("a marker stays", "job", g.at.grant.Job, "on", h.Name, "error", err)
			all = false
		}
	}
	return all
}
