package approvals

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/fleet"
	"muster/internal/secretref"
	"muster/jobs"
	"muster/scripts"
	"muster/trust"
)

// A plan is what a person reads before they sign. Everything in it is read from the bytes of the
// order, but for the customers of hosts and who has signed.
type plan struct {
	said   api.HeldDetail // as the server says it
	order  *trust.Order
	spec   jobs.Spec
	frozen scripts.Frozen
	hosts  []string
}

// planOf reads the plan of a held task. It returns an error unless the bytes have the hash that the
// server says, are the order of this task, and name the hosts that the server sends.
func planOf(d api.HeldDetail, id jobs.TaskID) (plan, error) {
	p := plan{said: d}
	if hash := trust.HashOf(d.Order); hash != d.Hash {
		return p, fmt.Errorf("the server says that the order of task %s is %s, and it is %s: sign "+
			"nothing, and tell who runs the server", id, cli.Cell(d.Hash), hash)
	}
	var err error
	if p.order, err = trust.Parse(d.Order); err != nil {
		return p, fmt.Errorf("the order of task %s: %w", id, err)
	}
	if p.order.Task != id || d.Task != id {
		return p, fmt.Errorf("the server has sent the order of task %s in place of that of %s: sign "+
			"nothing, and tell who runs the server", cli.Cell(string(p.order.Task)), id)
	}
	err = json.Unmarshal(p.order.Spec, &p.spec)
	if err == nil {
		err = json.Unmarshal(p.spec.Action, &p.frozen)
	}
	if err != nil {
		return p, fmt.Errorf("the order of task %s cannot be read: %w", id, err)
	}
	if p.frozen.Runbook != p.spec.Runbook {
		return p, fmt.Errorf("the order of task %s has the steps of %s under the name %s: sign nothing, "+
			"and tell who runs the server", id, cli.Cell(p.frozen.Runbook), cli.Cell(p.spec.Runbook))
	}
	p.hosts, err = hostsOf(p.order, d.Zones)
	return p, err
}

// hostsOf returns the names of the hosts of an order. The server sends them, and the order has
// their hashes.
func hostsOf(o *trust.Order, zones []api.HeldZone) ([]string, error) {
	var names []string
	for _, z := range o.Zones {
		i := slices.IndexFunc(zones, func(s api.HeldZone) bool { return s.Zone == z.Name })
		if i < 0 || len(zones[i].Shares) != len(z.Shares) {
			return nil, fmt.Errorf("the server does not say which hosts of zone %s are meant",
				cli.Cell(z.Name))
		}
		for n, text := range zones[i].Shares {
			records, err := o.Share(z.Name, n, text)
			if err != nil {
				return nil, fmt.Errorf("zone %s: %w", cli.Cell(z.Name), err)
			}
			names = slices.AppendSeq(names, maps.Keys(records))
		}
	}
	slices.Sort(names)
	return names, nil
}

// text shows the plan.
func (p plan) text() string {
	pairs := [][2]string{{"task", cli.Cell(string(p.order.Task))},
		{"runbook", cli.Cell(p.frozen.Runbook) + ", sha256 " + cli.Cell(p.frozen.Hash)}}
	pairs = append(pairs, arguments(p.frozen.Values)...)
	last, changes := p.lastRun()
	var steps []string
	for _, step := range p.frozen.Steps {
		steps = append(steps, step.Name)
	}
	pairs = append(pairs, [2]string{"steps", cli.Cell(strings.Join(steps, ", "))},
		[2]string{"last run", last},
		[2]string{"ordered by", cli.Cell(p.spec.Operator)}, [2]string{"on", cli.Cell(p.spec.On)},
		[2]string{"hosts", fmt.Sprintf("%d: %s", len(p.hosts), cli.Cell(fleet.Fold(p.hosts)))})
	for _, c := range p.said.Customers {
		pairs = append(pairs, [2]string{"customer", fmt.Sprintf("%s, %s: %s",
			cli.OrDash(cli.Cell(c.Customer)), cli.Count(c.Count, "host"), cli.Cell(c.Hosts))})
	}
	for _, z := range p.order.Zones {
		pairs = append(pairs, [2]string{"zone", cli.Cell(z.Name) + ", " + cli.Count(z.Hosts, "host")})
	}
	pairs = append(pairs, [2]string{"begins", p.begins()}, [2]string{"freezes", p.freezes()},
		[2]string{"breaks glass", cli.Cell(p.order.BreakGlass)},
		[2]string{"reason", cli.Cell(p.spec.Reason)}, [2]string{"order", trust.HashOf(p.said.Order)},
		[2]string{"signed by", cli.OrDash(cli.Cell(strings.Join(p.said.Signed, ", "))) +
			missingWords(p.said.Missing)},
		[2]string{"waits until", cli.Moment(p.said.Until)})
	text := cli.Details(pairs...)
	if changes != "" {
		text += "\nsteps since the last run (-: then, +: now)\n" + changes
	}
	return text
}

// begins says when jobs may begin.
func (p plan) begins() string {
	words := "from"
	if p.order.NotBefore.After(p.spec.Created.Time()) { // else the order allows for slow clocks
		words += " " + cli.Moment(jobs.Time{Time: p.order.NotBefore})
	} else {
		words += " the last signature"
	}
	words += " to " + cli.Moment(jobs.Time{Time: p.order.NotAfter})
	if p.spec.Window {
		words += ", in approved windows of the hosts only"
	}
	return words
}

// freezes says whether the task ignores freezes, and why.
func (p plan) freezes() string {
	if p.spec.Override == "" {
		return ""
	}
	return "it ignores them: " + cli.Cell(p.spec.Override)
}

// argumentMax bounds the value of an argument in a plan.
const argumentMax = 500 // columns

// arguments lists the values of a task by name; of secrets and files it has no contents.
func arguments(v scripts.Values) (pairs [][2]string) {
	for _, name := range slices.Sorted(maps.Keys(v.Args)) {
		value := v.Args[name]
		words := cli.Fit(cli.Cell(value), argumentMax)
		if content, ok := v.Files[value]; ok {
			words = fmt.Sprintf("a file of %d bytes, sha256 %s", len(content), cli.Cell(value))
		} else if size, ok := v.Blobs[value]; ok {
			words = fmt.Sprintf("a file of %d bytes, sha256 %s", size, cli.Cell(value))
		}
		pairs = append(pairs, [2]string{"argument", cli.Cell(name) + "=" + words})
	}
	for _, name := range slices.Sorted(maps.Keys(v.Secrets)) {
		words := " (secret)"
		if ref, ok := secretref.Cut(v.Secrets[name]); ok {
			words = " (secret, from " + cli.Fit(cli.Cell(ref), argumentMax) + ")"
		}
		pairs = append(pairs, [2]string{"argument", cli.Cell(name) + words})
	}
	return pairs
}
