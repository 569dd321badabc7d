package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"muster/jobs"
	"muster/jobs/queue/hooks"
	"muster/master/governor"
)

// A State holds the values that a server has read for one scrape.
type State struct {
	Hosts   int // of the inventory in force; -1: there is none
	Refused bool
	History *History // nil: this server keeps none
	Streams int64
	Nodes   []jobs.Node // nil: not read
	Times   bool        // the timetable in Redis is not believed
	Zones   []Zone
	Up      bool
	Writes  bool
	Audit   *Audit  // nil: this server keeps none
	Notify  *Notify // nil: there are no rules
	Wrong   map[Part]bool
	Looks   Looks
	Calls   []hooks.Call

	Repositories []Repository
}

// Looks counts what waits for a person to look; -1: not read.
type Looks struct {
	Groups int // that are frozen
	Hosts  int // in quarantine
}

// History says whether history is written.
type History struct {
	Trouble bool // this server is to write it and cannot
	// Known says that the next ones were read: whether history is away, and the share of each
	// zone's stream that is used then.
	Known   bool
	Away    bool
	Backlog map[string]float64
}

// A Zone holds the numbers of a zone in Redis.
type Zone struct {
	Name               string
	Spoiled            bool // the rest could not be read
	Queued, Again, Due int64
	Overdue            float64 // seconds
	Shut               bool
	Stops              map[Stop]bool
	Working            int  // nodes that begin jobs; -1: not known
	Unserved           bool // there are none, and it matters
	EndedJobs          map[jobs.Outcome]int64
	EndedTasks         int64
}

// snapshot is a collector of values that were read before.
type snapshot []prometheus.Metric

// Describe describes nothing, which makes it an unchecked collector.
func (s snapshot) Describe(chan<- *prometheus.Desc) {}

// Collect gives what was read.
func (s snapshot) Collect(to chan<- prometheus.Metric) {
	for _, m := range s {
		to <- m
	}
}

// metric is a value and the words about it.
type metric struct {
	name, help string
	value      float64
}

// add appends a gauge; labels are pairs of name and value.
func (s *snapshot) add(name, help string, value float64, labels ...string) {
	s.append(prometheus.GaugeValue, metric{name, help, value}, labels)
}

func (s *snapshot) append(kind prometheus.ValueType, m metric, labels []string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	*s = append(*s, prometheus.MustNewConstMetric(prometheus.NewDesc(m.name, m.help, names, nil),
		kind, m.value, values...))
}

func (now State) collect() snapshot {
	var out snapshot
	if now.Hosts >= 0 {
		out.add("muster_inventory_hosts", "Hosts of the inventory in force.", float64(now.Hosts))
	}
	out.add("muster_inventory_refused", "1 while an earlier inventory is in force, because the one "+
		"that was read last has mistakes.", number(now.Refused))
	if now.History != nil {
		out.history(*now.History)
	}
	if now.Audit != nil {
		out.audit(*now.Audit)
	}
	if now.Notify != nil {
		out.notify(*now.Notify)
	}
	for _, r := range now.Repositories {
		out.repository(r)
	}
	out.add("muster_streams_open", "Event streams open on this server.", float64(now.Streams))
	if now.Nodes != nil {
		out.nodes(now.Nodes)
	}
	for _, z := range now.Zones {
		out.zone(z)
	}
	if now.Looks.Groups >= 0 {
		out.add("muster_groups_frozen", "Redundancy groups that are frozen: a disruptive job in them "+
			"ended unknown, and a person must look.", float64(now.Looks.Groups))
	}
	if now.Looks.Hosts >= 0 {
		out.add("muster_hosts_quarantined", "Hosts that take no job but checks, until a person or a "+
			"check that succeeds releases them.", float64(now.Looks.Hosts))
	}
	for _, part := range Parts() {
		out.add("muster_trouble", "1 for each part of the house of which muster health says what is "+
			"wrong.", number(now.Wrong[part]), "part", string(part))
	}
	out.calls(now.Calls)
	out.add("muster_timetable_in_doubt", "1 while no server has signed the timetable in Redis, or it "+
		"is not the last one.", number(now.Times))
	out.add("muster_redis_up", "1 if Redis could be read.", number(now.Up))
	out.add("muster_redis_writes", "1 if Redis accepts new data: it is not full, and no replica.",
		number(now.Writes))
	return out
}

func (s *snapshot) history(h History) {
	s.add("muster_history_trouble", "1 while this server is to write history and cannot.",
		number(h.Trouble))
	if !h.Known {
		return
	}
	s.add("muster_history_away", "1 while no server writes history, as the server said whose duty "+
		"that is.", number(h.Away))
	for zone, share := range h.Backlog {
		s.add("muster_history_backlog_ratio", "While history is away: the share of the events that "+
			"Redis can hold of a zone which is not stored. From 1 on events are lost.", share, "zone", zone)
	}
}

func (s *snapshot) zone(z Zone) {
	s.add("muster_zone_spoiled", "1 while a key of the zone has another type than muster gives it, "+
		"so that other numbers of the zone are missing.", number(z.Spoiled), "zone", z.Name)
	if z.Spoiled {
		return
	}
	const jobsHelp = "Jobs of a zone that never started (queued), that run or wait for another " +
		"attempt (again), and of both those whose time has come (due). Jobs of a paused task are in none."
	s.add("muster_queue_jobs", jobsHelp, float64(z.Queued), "zone", z.Name, "set", "queued")
	s.add("muster_queue_jobs", jobsHelp, float64(z.Again), "zone", z.Name, "set", "again")
	s.add("muster_queue_jobs", jobsHelp, float64(z.Due), "zone", z.Name, "set", "due")
	s.add("muster_queue_overdue_seconds", "Seconds since the first job that never started was to "+
		"run; 0 if none was to run yet.", z.Overdue, "zone", z.Name)
	s.add("muster_zone_frozen", "1 while nothing starts in the zone: it is frozen or paused, or all "+
		"of muster is halted.", number(z.Shut), "zone", z.Name)
	for _, stop := range Stops() {
		s.add("muster_zone_stopped", "1 while nothing starts in the zone for this reason.",
			number(z.Stops[stop]), "zone", z.Name, "reason", string(stop))
	}
	if z.Working >= 0 {
		s.add("muster_zone_nodes", "Nodes that begin jobs of the zone.", float64(z.Working), "zone",
			z.Name)
		s.add("muster_zone_unserved", "1 while no node begins jobs of the zone, and it has open tasks, "+
			"or hosts and had a node before.", number(z.Unserved), "zone", z.Name)
	}
	const all = " since Redis knows the zone. Every server says the same number: do not add them up."
	for _, o := range jobs.Outcomes() {
		s.append(prometheus.CounterValue, metric{"muster_jobs_ended_total",
			"Jobs that ended in a zone" + all, float64(z.EndedJobs[o])},
			[]string{"outcome", string(o), "zone", z.Name})
	}
	s.append(prometheus.CounterValue, metric{"muster_tasks_ended_total",
		"Tasks that ended in a zone, one of several zones in each of them," + all,
		float64(z.EndedTasks)}, []string{"zone", z.Name})
}

// nodes counts nodes by state. A node whose master reports an unknown state is counted as other,
// so that the states stay few.
func (s *snapshot) nodes(list []jobs.Node) {
	states := map[string]int{"running": 0, "draining": 0, "stopping": 0, "gone": 0, "other": 0}
	children, doubt, paused, allowed := 0, 0, 0, 0
	starved := map[governor.Kind]int{}
	for _, k := range governor.Kinds() {
		starved[k] = 0
	}
	for _, n := range list {
		state := n.State
		if _, known := states[state]; !known {
			state = "other"
		}
		states[state]++
		if state != "gone" { // its last report says nothing about now
			children += len(n.Children)
			allowed += n.Most()
			starve(starved, n)
		}
		if n.Paused != nil {
			paused++
		}
		if n.Doubt != "" {
			doubt++
		}
	}
	s.add("muster_nodes_in_doubt", "Nodes whose workers do not know what is agreed about times, or "+
		"whom they may trust, and begin nothing.", float64(doubt))
	noted, wrong, skew := clocks(list)
	s.add("muster_nodes_noted", "Nodes with a message for the operator, such as a refused reload or "+
		"children that do not start; muster nodes shows it.", float64(noted))
	s.add("muster_nodes_clock_wrong", "Nodes whose clock differs from that of Redis so much that "+
		"they begin no job that needs a window.", float64(wrong))
	s.add("muster_nodes_clock_skew_seconds", "Greatest difference between the clock of a node and "+
		"that of Redis.", skew)
	s.add("muster_nodes_paused", "Nodes that take nothing, by order of an operator.", float64(paused))
	for kind, n := range starved {
		s.add("muster_nodes_starved", "Nodes that take nothing because their machines lack something. A "+
			"node that lacks several things counts for each.", float64(n), "kind", string(kind))
	}
	s.add("muster_children_allowed", "Worker processes that all nodes may have now: fewer than in "+
		"their configurations if machines have little left.", float64(allowed))
	for state, n := range states {
		s.add("muster_nodes", "Nodes by the state that their masters reported; gone: no report came "+
			"for a while.", float64(n), "state", state)
	}
	s.add("muster_children", "Worker processes of all nodes that are not gone.", float64(children))
}

// clocks counts the nodes that live with a message, those with a wrong clock, and returns the
// greatest difference of a clock.
func clocks(list []jobs.Node) (noted, wrong int, skew float64) {
	for _, n := range list {
		if n.State == jobs.NodeGone {
			continue
		}
		if n.Note != "" {
			noted++
		}
		if n.Clock.Wrong() {
			wrong++
		}
		skew = max(skew, math.Abs(n.Clock.Skew))
	}
	return noted, wrong, skew
}

// starve counts a node for each kind of which its machine has too little. Words of a later version
// count nowhere, so that the kinds stay few.
func starve(starved map[governor.Kind]int, n jobs.Node) {
	if n.Governor == nil || !n.Governor.Starved {
		return
	}
	for _, kind := range n.Governor.Kinds {
		if _, known := starved[governor.Kind(kind)]; known {
			starved[governor.Kind(kind)]++
		}
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
