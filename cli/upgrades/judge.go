package upgrades

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// unknown is the version of what does not say it.
const unknown = "unknown"

// Status says how far an upgrade is.
type Status struct {
	Complete bool           `json:"complete"` // all that is known runs To, and nothing is unknown
	To       string         `json:"to"`
	Versions []Version      `json:"versions"`
	Holds    []Hold         `json:"holds"` // what keeps it from being complete
	Forms    []api.DataForm `json:"forms"`
}

// Version counts what runs one version.
type Version struct {
	Version  string `json:"version"`
	Servers  int    `json:"servers"`
	Running  int    `json:"running"`  // nodes
	Draining int    `json:"draining"` // nodes that end, or take nothing
	Gone     int    `json:"gone"`     // servers and nodes that do not report; their last version
	Children int    `json:"children"` // of nodes that run another version
	Jobs     int    `json:"jobs"`     // in hand
}

// A Hold is something that does not run the new version.
type Hold struct {
	What    string    `json:"what"` // server, node, child, data
	Where   string    `json:"where"`
	Version string    `json:"version"`
	Jobs    []jobs.ID `json:"jobs,omitempty"` // in hand
	Do      string    `json:"do"`
}

// A judge puts a status together.
type judge struct {
	Status
	rows map[string]*Version
}

// judgeAll compares all that reports with the new version. It is pure.
func judgeAll(to string, u api.UpgradeState, nodes []jobs.Node) Status {
	j := &judge{Status{To: to, Versions: []Version{}, Holds: []Hold{},
		Forms: cli.Filled(u.Forms)}, map[string]*Version{}}
	for _, s := range u.Servers {
		j.server(s)
	}
	for _, n := range nodes {
		j.node(n)
	}
	for _, f := range u.Forms {
		if f.Wrong != "" {
			j.hold(Hold{What: "data", Where: f.Where, Version: f.By, Do: f.Wrong})
		}
	}
	if len(nodes) == 0 {
		j.hold(Hold{What: "node", Where: "all", Version: unknown,
			Do: "no node is known, so nobody can say that the old version is gone: start muster master"})
	}
	if len(u.Servers) == 0 {
		j.hold(Hold{What: "server", Where: "all", Version: unknown,
			Do: "no server has reported its version yet: ask again in ten seconds"})
	}
	for _, row := range j.rows {
		j.Versions = append(j.Versions, *row)
	}
	slices.SortFunc(j.Versions, func(a, b Version) int { // the new one first
		return cmp.Or(cmp.Compare(number(b.Version == to), number(a.Version == to)),
			strings.Compare(a.Version, b.Version))
	})
	j.Complete = len(j.Holds) == 0
	return j.Status
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (j *judge) row(version string) *Version {
	version = cmp.Or(version, unknown)
	if j.rows[version] == nil {
		j.rows[version] = &Version{Version: version}
	}
	return j.rows[version]
}

func (j *judge) hold(h Hold) {
	h.Version = cmp.Or(h.Version, unknown)
	j.Holds = append(j.Holds, h)
}

// server counts a server. One that does not report may still run: nobody knows.
func (j *judge) server(s api.Serving) {
	if s.Gone {
		j.row(s.Version).Gone++
	} else {
		j.row(s.Version).Servers++
	}
	h := Hold{What: "server", Where: s.Server, Version: s.Version}
	switch {
	case s.Gone:
		h.Do = fmt.Sprintf("it was killed, or cannot reach Redis, since %s: see that it does not run; "+
			"the list forgets it a day later", s.Seen)
	case s.Version == j.To:
		return
	default:
		h.Do = "install the new version there, and systemctl restart muster-server"
	}
	j.hold(h)
}

// node counts a node and its children.
func (j *judge) node(n jobs.Node) {
	row := j.row(n.Version)
	h := Hold{What: "node", Where: n.ID, Version: n.Version}
	switch {
	case n.State == jobs.NodeGone:
		row.Gone++
		h.Do = "it is gone: start the new version there; or see that nothing runs, and wait until the " +
			"list of nodes forgets it"
	case n.State == jobs.NodeDraining || n.State == jobs.NodeStopping:
		row.Draining++
		h.Do = "it ends after its jobs in hand: wait"
	default:
		row.Running++
		h.Do = "install the new version there, which replaces the master (or kill -USR2 it)"
		if strings.Contains(n.Note, "upgrade refused") {
			h.Do = "it has refused the new binary: " + cli.Cell(n.Note)
		}
	}
	for _, c := range n.Children {
		j.child(n, c, &h)
	}
	if n.Version != j.To || n.State == jobs.NodeGone {
		j.hold(h)
	}
}

// child counts a child: with its node, or by itself if it is of another version.
func (j *judge) child(n jobs.Node, c jobs.Child, of *Hold) {
	ids := c.Jobs
	if len(ids) == 0 && c.Job != "" {
		ids = []jobs.ID{c.Job}
	}
	version := cmp.Or(c.Version, n.Version)
	if c.Orphan {
		version = cmp.Or(c.Version, unknown)
	}
	row := j.row(version)
	row.Jobs += len(ids)
	if version == n.Version {
		of.Jobs = append(of.Jobs, ids...)
		return
	}
	row.Children++
	if version != j.To {
		j.hold(Hold{What: "child", Where: fmt.Sprintf("%s pid %d", n.ID, c.PID), Version: version,
			Jobs: ids, Do: "it ends by itself after its jobs in hand: wait, or muster cancel them"})
	}
}
