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

// This file keeps muster from disturbing two members of a redundancy group at once, also if Redis
// has forgotten a job on one of them (design §10, G6). Before the first step of a job that disturbs
// its host, the attempt writes a marker on every member of the group, its own host included, in the
// order of their names. So one of two jobs meets the marker of the other, whatever each of them
// believes. If a member cannot be asked, the step does not start: a group with one member missing
// must keep the other.

// Kin answers who is in a redundancy group, and what the queue knows of a job that had the group.
type Kin interface {
	// Kin returns the groups of a zone in an inventory, each with the sorted names of its hosts.
	Kin(ctx context.Context, zone, version string) (map[string][]string, error)

	// Hosts reads hosts of a zone in an inventory.
	Hosts(ctx context.Context, zone, version string, names []string) ([]fleet.Host, error)

	// Fate returns the state and the end of a job, and when its group was cleared.
	Fate(ctx context.Context, zone, group string, id jobs.ID) (jobs.Standing, error)
}

const (
	// markKeep bounds the time for which the marker of a forgotten job counts. Redis keeps ended
	// jobs for the same time, and a person has that time to look at the group.
	markKeep = 24 * time.Hour

	// markRenew is the age at which an attempt writes its markers again.
	markRenew = 12 * time.Hour

	// markTime bounds the removal of the markers from all members.
	markTime = 10 * time.Second

	// markTurns bounds the questions to a member whose marker changes between two questions.
	markTurns = 3
)

// groupMarks holds the markers of an attempt on the members of its group.
type groupMarks struct {
	at     *Attempt
	held   bool            // the group kept the attempt from its step
	unused bool            // this attempt wrote the markers, and has begun no step since
	others map[string]Conn // connections to the other members
}

// groups remembers the members of groups. The attempts of a worker share it.
type groups struct {
	mu            sync.Mutex
	zone, version string
	kin           map[string][]string
}

// members returns the hosts of the group, in the order of their names.
func (g *groupMarks) members(ctx context.Context) ([]fleet.Host, error) {
	own, version := *g.at.grant.Host, g.at.plan.Spec.Inventory
	if g.at.env.Kin == nil {
		return nil, errors.New("this worker cannot ask for the members of groups")
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

// claims reports whether every member of the group must carry the marker of this job before a step
// may start.
func (g *groupMarks) claims(action scripts.Action) bool {
	h := g.at.grant.Host
	if h == nil || h.Group == "" || !g.at.plan.Spec.Disruptive || !g.at.plan.disturbs(action) {
		return false
	}
	old := time.Duration(g.at.grant.Token-g.at.memory.Marked) * time.Microsecond
	return g.at.memory.Marked == 0 || old > markRenew
}

// claim writes the marker of this job on all members, or returns why the step must not start.
func (g *groupMarks) claim(ctx context.Context, action scripts.Action) ruling {
	if !g.claims(action) || verdict.StoppedBy(g.at.stop.ctx) != nil {
		return ruling{ok: true} // a cancelled job starts nothing
	}
	defer g.at.spend(jobs.Queueing)() // the job waits for the markers as for a lock
	group := g.at.grant.Host.Group
	members, err := g.members(ctx)
	if err != nil {
		return ruling{soon: true, group: true,
			why: fmt.Sprintf("the members of group %s are not known: %s", group,
				verdict.OneLine(err.Error()))}
	}
	first := g.at.memory.Marked == 0
	for i, h := range members {
		why, taken := g.take(ctx, h)
		if why == "" || !first && !taken {
			continue // this member carried the marker before, and could not be asked again
		}
		if first {
			g.giveUp(ctx, members[:i])
		}
		return ruling{soon: true, group: true, why: fmt.Sprintf("group %s: %s", group, why)}
	}
	g.at.memory.Marked, g.unused = g.at.grant.Token, first
	return ruling{ok: true}
}

// take writes the marker on one member. If it cannot, it returns why, and whether another job has
// taken the group.
func (g *groupMarks) take(ctx context.Context, h fleet.Host) (why string, taken bool) {
	if !verdict.KeepsRecords(&h) {
		return "", false // this member cannot carry a marker, and the plan of the task said so
	}
	m := g.marker()
	for range markTurns {
		made, err := g.mark(ctx, h, m)
		switch {
		case verdict.Asked(err) == remote.KindBusy:
			return fmt.Sprintf("%s could not be marked now, muster will try again: %s", h.Name,
				verdict.Reason(err)), false
		case err != nil:
			return fmt.Sprintf("%s could not be marked, and muster disturbs no member of a group while one "+
				"of them cannot be asked: %s. If it is gone for good, take it out of the group", h.Name,
				verdict.Reason(err)), false
		case made.Other == nil:
			return "", false
		}
		if why = g.obstacle(ctx, h, *made.Other); why != "" {
			return why, true
		}
		m.Over = *made.Other
	}
	return why, true
}

// marker returns the marker of this job.
func (g *groupMarks) marker() remote.Marker {
	token := int64(g.at.grant.Token)
	return remote.Marker{Group: g.at.grant.Host.Group, Host: g.at.grant.Host.Name,
		Job:   string(g.at.grant.Job),
		Token: token, Until: token + markKeep.Microseconds()}
}

// mark writes or removes a marker on a member, over the connection to it, or a new one.
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
	conn, err := g.dial(ctx, h)
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

// dial connects to a member, if its record is the one that was signed. The sudo of another host
// than that of the job gets no password unless the task is for that host, too.
func (g *groupMarks) dial(ctx context.Context, h fleet.Host) (Conn, error) {
	if h.Name == g.at.grant.Host.Name {
		return g.at.secrets.dial(ctx, g.at.env.Dial, h)
	}
	in, its, err := true, secrets{}, error(nil) // without rules the node believes Redis
	if g.at.env.Trust != nil {
		in, err = g.at.env.Trust.Kin(ctx, g.at.zone, g.at.grant.Job, h)
	}
	if err == nil && in {
		its, err = entry{g.at}.passwordOf(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	conn, err := its.dial(ctx, g.at.env.Dial, h)
	if err != nil || len(its.veil) == 0 {
		return conn, err
	}
	return &veiledConn{conn, its.veil}, nil
}

// leaveOthers closes the connections to the other members.
func (g *groupMarks) leaveOthers() {
	for _, conn := range g.others {
		conn.Close()
	}
	g.others = nil
}

// obstacle returns why the marker of another job keeps this job from its step; empty if the marker
// does not count any more, by the state of the other job in the queue.
func (g *groupMarks) obstacle(ctx context.Context, h fleet.Host, o remote.Marked) string {
	by, what := remote.Name(o.Job), remote.Name(o.Host) // a host chose these words
	id, err := jobs.ParseID(o.Job)
	if err != nil {
		id = jobs.NewID(g.at.grant.Job.Task(), "-") // no such job: only a clear of the group counts
	}
	fate, err := g.at.env.Kin.Fate(ctx, g.at.zone, g.at.grant.Host.Group, id)
	if err != nil {
		return fmt.Sprintf("%s carries the marker of job %s, and the state of that job is not known: %s",
			h.Name, by, verdict.OneLine(err.Error()))
	}
	if why := counts(o, fate, g.at.grant); why != "" {
		return fmt.Sprintf("%s carries the marker of job %s, which disturbs %s: %s", h.Name, by,
			what, why)
	}
	return ""
}

// counts returns why a marker on a host still counts against another job, by the state of its own
// job in the queue. The marker of a forgotten job counts until a person clears the group, or a day
// has passed.
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

// unmark removes the markers when the job has ended with a known outcome, or if no step began
// while they were there. The next job replaces a marker that could not be removed.
func (g *groupMarks) unmark(ctx context.Context, r jobs.Result) jobs.Result {
	ends := r.Kind == jobs.KindEnd && r.Outcome != jobs.Unknown && !r.KeepLock
	if g.at.memory.Marked == 0 || !ends && !g.unused {
		return r
	}
	members, err := g.members(ctx)
	if err != nil {
		g.at.logger().Info("the markers of a group were not removed", "error", err)
		return r
	}
	if !g.giveUp(ctx, members) || r.Kind == jobs.KindEnd {
		return r
	}
	m := verdict.Recall(r.Saved)
	m.Marked = 0
	r.Saved = m.Replacing(verdict.ToldQueue)
	// Earlier steps may have run, but none that disturbs: no other job need wait for the group.
	r.Release = r.Release || r.Kind == jobs.KindDefer && g.unused && !g.at.memory.Unfinished() &&
		m.Probe == nil && !verdict.MayHaveRun(g.at.grant)
	return r
}

// giveUp removes the markers of this job, and reports whether all are gone.
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
			g.at.logger().Info("a marker was not removed", "on", h.Name, "error", err)
			all = false
		}
	}
	return all
}
