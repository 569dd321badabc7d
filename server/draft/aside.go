package draft

import (
	"fmt"
	"strings"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs/quarantine"
	"muster/scripts"
)

// Checks reports whether a task changes nothing: a dry run, or a runbook of checks alone. Hosts in
// quarantine take no other.
func Checks(f scripts.Frozen) bool {
	if strings.HasSuffix(f.Runbook, " ("+scripts.OnlyCheck+")") ||
		strings.HasSuffix(f.Runbook, " ("+scripts.OnlyDiff+")") {
		return true
	}
	for _, s := range f.Steps {
		if s.Kind != scripts.KindCheck {
			return false
		}
	}
	return len(f.Steps) > 0
}

// pick picks the hosts of a task. A task that changes something is refused if its selector picks
// hosts in quarantine, as one that names the label drained does.
func (in Setting) pick(on string, check bool) (fleet.Picked, error) {
	if check {
		if picked, err := in.Scene.ForCheck().PickFor(on); err == nil {
			return picked, nil
		}
		return in.Scene.PickFor(on) // by the label drained, which hosts in quarantine have there
	}
	picked, err := in.Scene.PickFor(on)
	if names := in.Scene.Aside(picked.Hosts); err == nil && len(names) > 0 {
		return picked, fmt.Errorf("hosts in quarantine take only checks: %s; %s",
			wording.ClipList(fleet.Fold(names)), quarantine.How)
	}
	return picked, err
}
