package scripts

import "fmt"

// The ways to run a runbook without changes.
const (
	OnlyCheck = "check" // the checks before the first change
	OnlyDiff  = "diff"  // the checks, and a display of what would change
)

// Only returns the part of a runbook for a kind of run. If what is empty, it leaves out only
// the steps that show what would change. For a dry run it keeps, of the steps before the first
// change, checks, those marked preflight and, for OnlyDiff, those marked diff. A gate shows its
// question and ends a dry run: later steps may depend on what the person does. A playbook runs in
// its own check mode, and only further playbooks follow it: other steps may depend on its changes.
func (f Frozen) Only(what string) (Frozen, error) {
	keep := func(s Step) bool { return s.Dry != DryDiff }
	main := f.Steps[:f.MainSteps()]
	if what != "" {
		main = beforeChange(main)
		keep = func(s Step) bool { return s.Dry != DryDiff || what == OnlyDiff }
	}
	rescues := f.Steps[f.MainSteps():]
	var steps, behind []Step
	shows := false
	for _, s := range main {
		if !keep(s) {
			continue
		}
		if gate, ok := s.Spec.(*GateSpec); ok && what != "" {
			dry := *gate
			dry.Dry, s.Spec = true, &dry
		}
		book, plays := s.Spec.(*PlaybookSpec)
		if plays && what != "" {
			dry := *book
			dry.Dry, s.Spec, s.Disruptive = what, &dry, false
		}
		shows = shows || plays || s.Dry == DryDiff || what != OnlyDiff && s.Kind == KindCheck
		if b := s.OnFail; b != nil && what != "" {
			s.OnFail = nil
		} else if b != nil {
			first := b.First - f.MainSteps()
			s.OnFail = &Block{First: len(behind), Count: b.Count}
			behind = append(behind, rescues[first:first+b.Count]...)
		}
		steps = append(steps, s)
	}
	switch {
	case what == OnlyDiff && !shows:
		return f, fmt.Errorf("runbook %s cannot show what it would change: no step before its first "+
			"change is marked diff", f.Runbook)
	case what != "" && !shows:
		return f, fmt.Errorf("runbook %s has nothing for a dry run: no step of kind check or ansible "+
			"comes before its first change", f.Runbook)
	case len(steps) == 0:
		return f, fmt.Errorf("runbook %s does nothing but show what would change", f.Runbook)
	}
	for i := range steps {
		if b := steps[i].OnFail; b != nil {
			b.First += len(steps)
		}
	}
	f.Main, f.Steps = len(steps), append(steps, behind...)
	if what != "" {
		f.Runbook += " (" + what + ")" // its duration is no estimate for the whole runbook
		f.Disruptive, f.Repeatable, f.Timing = false, true, Timing{}
	}
	return f, nil
}

// beforeChange returns the steps before the first one that changes something.
func beforeChange(steps []Step) []Step {
	played := false
	for i, s := range steps {
		switch {
		case s.Kind == KindAnsible:
			played = true
		case played:
			return steps[:i]
		case kindTable[s.Kind].asks:
			return steps[:i+1]
		case s.Dry == "" && s.Kind != KindCheck:
			return steps[:i]
		}
	}
	return steps
}
