package intake

import (
	"encoding/json"
	"fmt"
	"slices"

	"muster/jobs/quarantine"
	"muster/scripts"
	"muster/server/draft"
)

// Aside says after which jobs a host is set aside.
type Aside quarantine.Policy

// mark writes beside a task what it is to hosts in quarantine.
func (a Aside) mark(p *draft.Draft) error {
	var frozen scripts.Frozen
	if err := json.Unmarshal(p.Task.Spec.Action, &frozen); err != nil {
		return fmt.Errorf("task %s: %w", p.Task.ID, err)
	}
	var customers []string
	for _, h := range p.Picked {
		if !slices.Contains(customers, h.Customer) {
			customers = append(customers, h.Customer)
		}
	}
	kind := quarantine.Policy(a).Of(p.Task.Spec.Runbook, customers, draft.Checks(frozen))
	if kind == quarantine.Plain {
		return nil
	}
	beside := map[string][]string{}
	for zone := range p.Hosts {
		beside[zone] = append([]string{quarantine.Field, string(kind)}, p.Task.Beside[zone]...)
	}
	p.Task.Beside = beside
	return nil
}
