package scripts

import "fmt"

// The ways to run a runbook without changing anything.
const (
	OnlyCheck = "check" // what is looked at before the first change
	OnlyDiff  = "diff"  // and what would change
)

// Only is the runbook as it is run: all of it but the steps that show what would change if
// what is empty; else, for a dry run, what stands before the first step that changes
// something: checks, what is marked preflight and, of OnlyDiff, what is marked diff. A gate
// says what it would ask, and is the last of them: what comes behind it may need what the
// person does.
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
		if s.Kind == KindGate && what != "" {
			dry := *s.Gate
			dry.Dry, s.Gate = true, &dry
		}
		shows = shows || s.Dry == DryDiff || what != OnlyDiff && s.Kind == KindCheck
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
		return f, fmt.Errorf("runbook %s has nothing for a dry run: no step of kind check stands "+
			"before its first change", f.Runbook)
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
		f.Runbook += " (" + what + ")" // how long it takes says nothing of the whole
		f.Disruptive, f.Repeatable, f.Timing = false, true, Timing{}
	}
	return f, nil
}

// beforeChange are the steps before the first one that changes something.
func beforeChange(steps []Step) []Step {
	for i, s := range steps {
		if s.Kind == KindGate {
			return steps[:i+1]
		}
		if s.Dry == "" && s.Kind != KindCheck {
			return steps[:i]
		}
	}
	return steps
}
