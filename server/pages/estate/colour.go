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
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server/pages/frame"
)

// A paint gives each host of the map its colour by something else than its group.
type paint struct {
	by    string            // outcome, age, or fact.NAME; empty: the map shows the groups
	value map[string]string // of each host that has one
	none  string            // what the others have, in words
	why   string            // the values are not known, or hidden; empty: they are known
	facts []string          // the names of facts that hosts have
}

// pastPages bounds the pages of history that colour the map: each has api.PageMax jobs.
const pastPages = 60

// ages are the steps of the age of facts.
var ages = []struct {
	most time.Duration
	name string
}{{time.Hour, "at most an hour old"}, {24 * time.Hour, "at most a day old"},
	{7 * 24 * time.Hour, "at most a week old"}}

// notProven stands for the outcome of a job for which no node has vouched.
const notProven = "not proven"

// oldest names the facts that are older than all steps.
const oldest = "more than a week old"

// paintOf asks for what colours the hosts that a selector picks.
func paintOf(h frame.House, on, by string) (paint, error) {
	p := paint{by: by, value: map[string]string{}, none: "never reported facts"}
	name, isFact := strings.CutPrefix(by, "fact.")
	switch {
	case by == "":
		return p, nil
	case by == "outcome":
		return p, p.past(h, on)
	case by != "age" && (!isFact || name == ""):
		return p, frame.Refusal(http.StatusUnprocessableEntity,
			"colour: %q: want outcome, age, or fact.NAME, such as fact.os", by)
	}
	list := frame.Try[api.FactList](h, "/v1/facts", url.Values{"on": {cmp.Or(on, "all")}})
	p.why = list.Why
	names := map[string]bool{}
	for _, one := range list.Is.Hosts {
		for fact := range one.Facts {
			names[fact] = true
		}
		if by == "age" {
			p.value[one.Host] = ageOf(one.Age)
		} else if v, has := one.Facts[name]; has {
			p.value[one.Host] = cmp.Or(v, "empty")
		}
	}
	if isFact {
		p.none = "has no fact " + name
	}
	p.facts = frame.Sorted(names)
	return p, nil
}

// ageOf names the step of an age in seconds.
func ageOf(seconds float64) string {
	for _, a := range ages {
		if seconds <= a.most.Seconds() {
			return a.name
		}
	}
	return oldest
}

// past reads the last outcome of each host, the newest jobs first, until each host has one.
func (p *paint) past(h frame.House, on string) error {
	wanted := map[string]bool{}
	_, _, err := eachHost(h, on, func(one fleet.Host, _ bool) { wanted[one.Name] = true })
	if err != nil {
		return err
	}
	from := time.Now().UTC().AddDate(0, 0, -historyDays)
	q := url.Values{"limit": {strconv.Itoa(api.PageMax)}, "from": {from.Format(time.RFC3339)}}
	p.none = fmt.Sprintf("no job ended in the last %d days", historyDays)
	for range pastPages {
		page := frame.Try[api.PastJobs](h, "/v1/history", q)
		if page.Why != "" {
			p.why, p.none = page.Why, "not known"
			return nil
		}
		for _, j := range page.Is.Jobs {
			if _, seen := p.value[j.Host]; wanted[j.Host] && !seen {
				p.value[j.Host] = string(j.Outcome)
				if j.Proof == api.NotProven {
					p.value[j.Host] = notProven
				}
			}
		}
		if page.Is.Next == "" || len(p.value) == len(wanted) {
			return nil
		}
		q.Set("cursor", page.Is.Next)
	}
	p.none = fmt.Sprintf("not among the last %d jobs that ended", pastPages*api.PageMax)
	return nil
}

// of returns what a host has, in words of the legend.
func (p paint) of(host string) string {
	if v, has := p.value[host]; has {
		return v
	}
	return p.none
}

// A shade is a kind of cells with the hosts that have it.
type shade struct {
	frame.CellKind
	Value string
	N     int
}

// shades returns the kinds of cells in the order of the legend. Kinds beyond what eyes tell apart
// are one.
func (p paint) shades(hosts []string) []shade {
	counts := map[string]int{}
	for _, host := range hosts {
		counts[p.of(host)]++
	}
	var out []shade
	if p.by == "outcome" {
		for _, o := range jobs.Outcomes() {
			k := frame.OutcomeKind(o)
			out = append(out, shade{k, string(o), counts[string(o)]})
		}
		out = append(out, shade{frame.CellKind{Name: notProven, Fill: "odd", Mark: "dot"}, notProven,
			counts[notProven]})
	} else {
		values := frame.Sorted(counts)
		if p.by == "age" {
			values = []string{ages[0].name, ages[1].name, ages[2].name, oldest}
		}
		values = slices.DeleteFunc(values, func(v string) bool { return v == p.none })
		for i, v := range values[:min(len(values), 8*len(marks))] {
			out = append(out, shade{frame.CellKind{Name: p.by + " " + v, Fill: "#" + strconv.Itoa(i),
				Mark: marks[i/8%len(marks)]}, v, counts[v]})
		}
	}
	for _, s := range out {
		delete(counts, s.Value)
	}
	none := counts[p.none]
	delete(counts, p.none)
	rest := 0
	for _, n := range counts {
		rest += n
	}
	if rest > 0 {
		out = append(out, shade{frame.CellKind{Name: "others", Fill: "none"}, "others", rest})
	}
	out = append(out, shade{frame.CellKind{Name: p.none, Fill: "line"}, p.none, none})
	return slices.DeleteFunc(out, func(s shade) bool { return s.N == 0 })
}

// marks are the shapes of cells: the ninth colour is the first again, in another shape.
var marks = []string{"", "half", "cross", "dot"}

// cells returns the map of hosts in the order that they are given.
func (p paint) cells(hosts []string) ([]frame.CellKind, []byte) {
	index := map[string]byte{}
	var kinds []frame.CellKind
	for i, s := range p.shades(hosts) {
		kinds = append(kinds, s.CellKind)
		index[s.Value] = byte(i)
	}
	var out []byte
	for _, host := range hosts {
		i, has := index[p.of(host)]
		if !has {
			i = index["others"]
		}
		out = append(out, i)
	}
	return kinds, out
}

// shown returns a value for people: an outcome has its sign, and a fact stays as the host wrote it.
func (p paint) shown(value string) string {
	if p.by == "outcome" {
		return frame.Signed(value)
	}
	return frame.ClipText(value)
}

// words says how many hosts of a group have which colour, the largest first.
func (p paint) words(hosts []string) string {
	list := p.shades(hosts)
	slices.SortStableFunc(list, func(a, b shade) int { return cmp.Compare(b.N, a.N) })
	var out []string
	for _, s := range list[:min(len(list), 6)] {
		out = append(out, strconv.Itoa(s.N)+" "+p.shown(s.Value))
	}
	if len(list) > 6 {
		out = append(out, fmt.Sprintf("%d more values", len(list)-6))
	}
	return frame.ClipText(strings.Join(out, ", "))
}

// coloured answers with the cells of hosts that are coloured by something else than their groups.
func coloured(h frame.House, w http.ResponseWriter, m frame.CellMap, q url.Values) {
	p, err := paintOf(h, q.Get("on"), q.Get("colour"))
	if err != nil {
		frame.WriteJSON(w, frame.ProblemOf(err).Status, map[string]string{"error": err.Error()})
		return
	}
	kinds, cells := p.cells(m.Names)
	m.Kinds, m.Cells = kinds, base64.StdEncoding.EncodeToString(cells)
	frame.WriteJSON(w, http.StatusOK, m)
}

// names returns the hosts of the map.
func (f fleetFacts) names() []string {
	var out []string
	for _, g := range f.groups {
		out = append(out, g.Names...)
	}
	return out
}

// facts returns the facts by which the map can be coloured.
func (f fleetFacts) facts() []string {
	name, is := strings.CutPrefix(f.paint.by, "fact.")
	if is && !slices.Contains(f.paint.facts, name) {
		return append([]string{name}, f.paint.facts...)
	}
	return f.paint.facts
}

// colouredBy says what the cells show, in words.
func (f fleetFacts) colouredBy() string {
	switch f.paint.by {
	case "":
		return f.by + "; a dot is drained"
	case "outcome":
		return "last outcome"
	case "age":
		return "age of facts"
	}
	return "fact " + strings.TrimPrefix(f.paint.by, "fact.")
}

// fillName returns the name of a colour in the style sheet.
func fillName(fill string) string {
	if n, err := strconv.Atoi(strings.TrimPrefix(fill, "#")); err == nil {
		return strconv.Itoa(n % 8)
	}
	return fill
}
