package estate

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"muster/server/pages/frame"

	"muster/api"
	"muster/fleet"
	"muster/jobs/quarantine"
)

// fleetFacts has what the page of the fleet shows.
type fleetFacts struct {
	on, by  string
	version string
	total   int
	groups  []frame.HostGroup
	labels  []string // by which the hosts can be grouped
	page    api.HostList
	wrong   string // the mistake in the selector
	paint   paint
}

// eachHost goes through all hosts that a selector picks.
func eachHost(h frame.House, on string, f func(fleet.Host, bool)) (total int, version string,
	err error) {
	for cursor := ""; ; {
		page, err := frame.HostPage(h, on, cursor, frame.HostsAtOnce)
		if err != nil {
			return 0, "", err
		}
		for _, one := range page.Hosts {
			_, drained := page.Drained[one.Name]
			f(one, drained)
		}
		if cursor = page.Next; cursor == "" {
			return page.Total, page.Version, nil
		}
	}
}

// keyOf returns what a host is grouped by.
func keyOf(h fleet.Host, by string) string {
	switch by {
	case "customer":
		return h.Customer
	case "zone":
		return h.Zone
	case "group":
		return h.Group
	}
	return h.Labels[strings.TrimPrefix(by, "label.")]
}

// selectorOf returns the selector of a group within another selector.
func selectorOf(on, by, value string) string {
	if value == "" || fleet.CheckName(value) != nil {
		return ""
	}
	one := strings.TrimPrefix(by, "label.") + "=" + value
	if on == "" || on == "all" {
		return one
	}
	return "(" + on + ") and " + one
}

// theFleet shows the hosts: a map, the folded groups, and a page of them.
func theFleet(h frame.House, r *http.Request) (frame.Show, error) {
	q := r.URL.Query()
	f := fleetFacts{on: q.Get("on"), by: cmp.Or(q.Get("by"), "customer")}
	groups, labels := map[string]*frame.HostGroup{}, map[string]bool{}
	total, version, err := eachHost(h, f.on, func(one fleet.Host, drained bool) {
		key := keyOf(one, f.by)
		g := groups[key]
		if g == nil {
			g = &frame.HostGroup{Name: key}
			groups[key] = g
		}
		g.Count++
		g.Names = append(g.Names, one.Name)
		if drained {
			g.Drained++
		}
		for name := range one.Labels {
			labels[name] = true
		}
	})
	s := frame.Show{Title: "Fleet", Nav: "Fleet"}
	if err == nil {
		f.paint, err = paintOf(h, f.on, q.Get("colour"))
	}
	if err != nil {
		p := frame.ProblemOf(err)
		if p.Status != http.StatusUnprocessableEntity {
			return frame.Show{}, err
		}
		f.wrong, s.Status = p.Error(), p.Status
		s.Top = fleetTop(f)
		return s, nil
	}
	f.total, f.version, f.labels = total, version, frame.Sorted(labels)
	for _, key := range frame.Sorted(groups) {
		g := groups[key]
		g.Hosts, g.On = fleet.Fold(g.Names), selectorOf(f.on, f.by, key)
		f.groups = append(f.groups, *g)
	}
	slices.SortStableFunc(f.groups, func(a, b frame.HostGroup) int { return b.Count - a.Count })
	if f.page, err = frame.HostPage(h, f.on, q.Get("cursor"), 100); err != nil {
		return frame.Show{}, err
	}
	s.Top = fleetTop(f)
	s.Parts = []frame.Part{{ID: "map", Body: fleetMapPart(f)}, {ID: "groups", Body: fleetGroups(f)},
		{ID: "hosts", Body: fleetHosts(f)}}
	return s, nil
}

// groupsShown bounds the rows of the folded table.
const groupsShown = 200

// address returns the address of the page of the fleet with other values.
func (f fleetFacts) address(on, by string) string {
	q := url.Values{}
	if on != "" {
		q.Set("on", on)
	}
	if by != "" {
		q.Set("by", by)
	}
	if f.paint.by != "" {
		q.Set("colour", f.paint.by)
	}
	if len(q) == 0 {
		return "/fleet"
	}
	return "/fleet?" + q.Encode()
}

// next returns the address of the next page of hosts.
func (f fleetFacts) next() string {
	return frame.With("/fleet", url.Values{"on": {f.on}, "by": {f.by},
		"colour": {f.paint.by}}, "cursor", f.page.Next) +
		"#hosts"
}

// drainOf says why a host is drained; empty: it is not.
func (f fleetFacts) drainOf(name string) string {
	d, is := f.page.Drained[name]
	if is && d.Note == "" {
		return "drained by a label of the inventory"
	}
	return d.Note
}

// labelsOf returns the labels of a host as text.
func labelsOf(h fleet.Host) string {
	var out []string
	for _, name := range frame.Sorted(h.Labels) {
		out = append(out, name+"="+h.Labels[name])
	}
	return strings.Join(out, " ")
}

// fleetCount answers a script with the number of hosts that a selector picks, or its mistake.
func fleetCount(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
	h := p.House(w, r)
	page, err := frame.HostPage(h, r.URL.Query().Get("on"), "", 5)
	text := ""
	if err != nil {
		text = frame.ProblemOf(err).Error()
	} else {
		var names []string
		for _, one := range page.Hosts {
			names = append(names, one.Name)
		}
		text = fmt.Sprintf("%s: %s", frame.Count(page.Total, "host", "hosts"), strings.Join(names, ", "))
		if page.Total > len(names) {
			text += ", …"
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// A browser that does not read its answer has gone.
	_, _ = w.Write([]byte(text))
}

// kindsMax bounds the kinds of cells: a byte has no more, and no eye tells so many colours apart.
const kindsMax = 60

// fleetMap answers with the cells of the hosts that a selector picks, coloured by what they are
// grouped by.
func fleetMap(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
	h, q := p.House(w, r), r.URL.Query()
	by := cmp.Or(q.Get("by"), "customer")
	m := frame.CellMap{Names: []string{}, Link: "/hosts/"}
	type spot struct {
		host    fleet.Host
		drained bool
	}
	var list []spot
	_, _, err := eachHost(h, q.Get("on"), func(one fleet.Host, drained bool) {
		if len(list) < frame.CellsMax {
			list = append(list, spot{one, drained})
		}
	})
	if err != nil {
		frame.WriteJSON(w, frame.ProblemOf(err).Status, map[string]string{"error": err.Error()})
		return
	}
	slices.SortStableFunc(list, func(a, b spot) int {
		return cmp.Or(cmp.Compare(keyOf(a.host, by), keyOf(b.host, by)), cmp.Compare(a.host.Name,
			b.host.Name))
	})
	if colour := q.Get("colour"); colour != "" {
		for _, one := range list {
			m.Names = append(m.Names, one.host.Name)
		}
		coloured(h, w, m, q)
		return
	}
	m.Kinds = []frame.CellKind{{Name: "drained", Fill: "none", Mark: "dot"}, {Name: "others",
		Fill: "none", Mark: ""}}
	index := map[string]byte{}
	var cells []byte
	for _, one := range list {
		key := keyOf(one.host, by)
		kind, known := index[key]
		if !known {
			kind = 1
			if len(m.Kinds) < kindsMax {
				kind = byte(len(m.Kinds))
				m.Kinds = append(m.Kinds, frame.CellKind{Name: by + " " + cmp.Or(key, "none"),
					Fill: "#" + strconv.Itoa(int(kind)-2), Mark: ""})
			}
			index[key] = kind
		}
		if one.drained {
			kind = 0
		}
		m.Names, cells = append(m.Names, one.host.Name), append(cells, kind)
	}
	m.Cells = base64.StdEncoding.EncodeToString(cells)
	frame.WriteJSON(w, http.StatusOK, m)
}

// hostFacts has what the page of a host shows.
type hostFacts struct {
	h       api.HostInfo
	facts   frame.Asked[api.FactList]
	windows frame.Asked[api.HostWindows]
	past    frame.Asked[api.PastJobs]
	groups  frame.Asked[api.GroupList]
	can     []frame.Order
	cannot  []frame.Denied
}

// host shows a host: what the inventory has, who holds it, its facts, windows and last jobs.
func host(h frame.House, r *http.Request) (frame.Show, error) {
	name := r.PathValue("host")
	path := "/v1/hosts/" + url.PathEscape(name)
	var f hostFacts
	if err := h.Get(path, nil, &f.h); err != nil {
		return frame.Show{}, err
	}
	f.facts = frame.Try[api.FactList](h, "/v1/facts", url.Values{"on": {name}})
	f.windows = frame.Try[api.HostWindows](h, path+"/windows", nil)
	f.past = frame.Try[api.PastJobs](h, "/v1/history", url.Values{"host": {name}, "limit": {"20"}})
	if f.h.Group != "" {
		f.groups = frame.Try[api.GroupList](h, "/v1/groups", nil)
	}
	list := []frame.Order{{Word: "drain", Name: "Drain", Link: "/hosts/" + name + "/order/drain"}}
	if f.h.IsDrained {
		list[0] = frame.Order{Word: "undrain", Name: "Undrain", Link: "/hosts/" + name + "/order/undrain"}
	}
	if f.h.Drained != nil && f.h.Drained.Only != "" {
		list = append(list, frame.Order{Word: "unquarantine", Name: "End the quarantine",
			Link: "/hosts/" + name + "/order/unquarantine"})
	} else {
		list = append(list, frame.Order{Word: "quarantine", Name: "Quarantine",
			Link: "/hosts/" + name + "/order/quarantine"})
	}
	if f.h.Lock != "" {
		list = append(list, frame.Order{Word: "release", Name: "Release the lock", Link: "/hosts/" +
			name + "/order/release"})
	}
	f.can, f.cannot = frame.Sift(h, list, map[string]string{"drain": "/v1/hosts/drain",
		"undrain": "/v1/hosts/undrain", "release": path + "/release",
		"quarantine": "/v1/hosts/quarantine", "unquarantine": "/v1/hosts/unquarantine"})
	return frame.Show{Title: name, Nav: "Fleet", Parts: []frame.Part{
		{ID: "why", Live: true, Body: hostWhy(f)},
		{ID: "orders", Live: true, Body: frame.OrderPart(f.can, f.cannot)},
		{ID: "inventory", Body: hostInventory(f)},
		{ID: "facts", Body: hostFactsPart(f)},
		{ID: "work", Live: true, Body: hostWork(f)},
		{ID: "windows", Body: hostWindows(f)},
		{ID: "past", Live: true, Hold: true, Body: hostPast(f)},
	}}, nil
}

// whyIdle says what keeps work from starting on a host now.
func (f hostFacts) whyIdle() []string {
	var out []string
	if f.h.IsDrained {
		note := "a label of the inventory drains it"
		if f.h.Drained != nil {
			note = f.h.Drained.Note
		}
		out = append(out, "It is drained, so selections leave it out: "+note+".")
		if f.h.Drained != nil && f.h.Drained.Only != "" {
			out = append(out, "Only checks begin there: "+quarantine.How+".")
		}
	}
	if f.h.Lock != "" {
		out = append(out, "Job "+string(f.h.Lock)+" has locked it, at the latest until "+
			f.h.Until.UTC().Format(frame.TextForm)+".")
	}
	for _, g := range f.groups.Is.Groups {
		if g.Name == f.h.Group && g.Frozen != "" {
			out = append(out, "Its group "+g.Name+" is frozen: "+g.Frozen)
		} else if g.Name == f.h.Group && g.Holder != "" {
			out = append(out, "Job "+string(g.Holder)+" disturbs its group "+g.Name+" now.")
		}
	}
	for _, j := range f.h.Jobs {
		if j.State != "ended" && j.Why != "" {
			out = append(out, "Job "+string(j.ID)+": "+j.Why)
		}
	}
	if f.windows.Why == "" && !f.windows.Is.Now.Open {
		out = append(out, "Work that needs a window may not start now: "+f.windows.Is.Now.Why)
	}
	return out
}

// inventoryOf lists what the inventory has of a host.
func (f hostFacts) inventoryOf() []frame.Fact {
	h := f.h
	var jumps []string
	for _, j := range h.Jump {
		jumps = append(jumps, j.Name)
	}
	on := func(name, value string) string {
		return "/fleet?on=" + url.QueryEscape(name+"="+value)
	}
	return []frame.Fact{{Name: "Customer", Value: h.Customer, Link: on("customer", h.Customer)},
		{Name: "Zone", Value: h.Zone, Link: on("zone", h.Zone)},
		{Name: "Group", Value: h.Group, Link: on("group", h.Group)},
		{Name: "Address", Value: h.Address + ":" + strconv.Itoa(h.Port)},
		{Name: "User", Value: h.User}, {Name: "Key on the node", Value: h.Key},
		{Name: "Jump hosts", Value: strings.Join(jumps, " → ")}, {Name: "Labels",
			Value: labelsOf(h.Host)},
		{Name: "Fence", Value: string(h.Fence)}, {Name: "Keeps no record", Value: h.Unfenced},
		{Name: "Limits", Value: strings.Join(h.Limits, ", ")},
		{Name: "Host keys", Value: frame.Count(len(h.HostKeys), "key", "keys")},
		{Name: "Inventory", Value: h.Inventory}}
}
