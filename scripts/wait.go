package scripts

import (
	"cmp"
	_ "embed" // the text that reboots a host
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Span is a duration, or the placeholder for one: an argument of type duration, or a saved
// value, which is a number of seconds or has the syntax of a duration.
type Span struct {
	Time time.Duration `json:"ns,omitempty"`
	Ref  string        `json:"ref,omitempty"`
}

// WaitSpec is a step of kind wait in a runbook: for a time, or until a condition
// holds.
type WaitSpec struct {
	For     Span   `json:"for"`
	Until   string `json:"until,omitempty"` // shell text
	Every   Span   `json:"every"`
	Limit   Span   `json:"limit"`
	Release bool   `json:"release,omitempty"`
	OnLate  string `json:"on_late,omitempty"`
}

// VerifySpec is a step of kind verify in a runbook.
type VerifySpec struct {
	Check string `json:"check"` // shell text
	Probes
}

// RebootSpec is a step of kind reboot in a runbook.
type RebootSpec struct {
	Command string `json:"command,omitempty"` // shell text; empty: defaultReboot
	Ready   string `json:"ready,omitempty"`   // shell text; empty: a new boot is sufficient
	Probes
}

// Probes says how often the worker probes whether a host is back, and ready. The defaults come
// from design §5.
type Probes struct {
	Unreachable AwayProbes  `json:"unreachable"`
	NotReady    ReadyProbes `json:"not_ready"`
}

// AwayProbes are the probes of a host that does not answer.
type AwayProbes struct {
	Every  time.Duration `json:"every_ns"`
	Probes int           `json:"probes"` // after so many probes the host is unreachable
}

// ReadyProbes are the probes of a host that answers and is not ready.
type ReadyProbes struct {
	First  time.Duration `json:"first_ns"` // before the first probe, and after it
	More   time.Duration `json:"more_ns"`  // added to the pause after each probe
	Probes int           `json:"probes"`   // so many, and one last
}

// DefaultProbes returns the numbers of design §5.
func DefaultProbes() Probes {
	return Probes{
		Unreachable: AwayProbes{Every: 30 * time.Second, Probes: 6},
		NotReady:    ReadyProbes{First: 30 * time.Second, More: 10 * time.Second, Probes: 6},
	}
}

// defaultReboot reboots a host three seconds later, so that the session can end properly.
//
//go:embed reboot.sh
var defaultReboot string

// NotYet is the exit code of a check that must be repeated later (EX_TEMPFAIL).
const NotYet = 75

// Wait is a step of kind wait for one host.
type Wait struct {
	For     time.Duration // 0: until Action.Shell succeeds
	Every   time.Duration
	Limit   time.Duration
	Release bool // releases the host while it waits
	Unknown bool // whether the outcome is unknown if the limit passes; otherwise the step fails
}

// fillWait fills in the wait for one host, and the shell text for which it waits.
func fillWait(f Frozen, w *WaitSpec, in scope, a *Action) (err error) {
	wait := &Wait{Release: w.Release, Unknown: w.OnLate == "unknown"}
	a.Spec = wait
	if w.Until == "" {
		wait.For, err = w.For.value(in, 0)
		return err
	}
	var errs [3]error
	wait.Every, errs[0] = w.Every.value(in, time.Second)
	wait.Limit, errs[1] = w.Limit.value(in, time.Second)
	a.Shell, errs[2] = f.shell(w.Until, in)
	return errors.Join(errs[:]...)
}

// Wait returns how long a step of kind wait waits; nil for steps of other kinds.
func (a Action) Wait() *Wait {
	w, _ := a.Spec.(*Wait)
	return w
}

// fillVerify fills in the check for one host.
func fillVerify(f Frozen, v *VerifySpec, in scope, a *Action) (err error) {
	a.Probes = &v.Probes
	a.Shell, err = f.shell(v.Check, in)
	return err
}

// fillReboot fills in for one host how it reboots, and how it says that it is ready.
func fillReboot(f Frozen, r *RebootSpec, in scope, a *Action) (err error) {
	a.Probes = &r.Probes
	a.Command, err = f.shell(cmp.Or(r.Command, defaultReboot), in)
	if err == nil && r.Ready != "" {
		a.Shell, err = f.shell(r.Ready, in)
	}
	return err
}

// value returns the duration of a span on a host.
func (s Span) value(in scope, least time.Duration) (time.Duration, error) {
	if s.Ref == "" {
		return s.Time, nil
	}
	text, err := in.value(s.Ref)
	if err != nil {
		return 0, fmt.Errorf("{{%s}}: %w", s.Ref, err)
	}
	if in.context.planned && strings.HasPrefix(s.Ref, savedPrefix) {
		return least, nil
	}
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	if n, bad := strconv.ParseUint(text, 10, 32); bad == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < least || d > waitMax {
		return 0, fmt.Errorf("{{%s}} is %s: want seconds, or a duration such as 90s, of %s to %s", s.Ref,
			brief(text), least, waitMax)
	}
	return d, nil
}

func readWait(p *parser, v value) *WaitSpec {
	w := &WaitSpec{Every: Span{Time: time.Minute}}
	seen := readMapping(p, v, waitKeys(), w)
	if !v.isMapping() {
		return w
	}
	_, hasFor := seen["for"]
	_, hasUntil := seen["until"]
	_, hasLimit := seen["limit"]
	switch {
	case hasFor == hasUntil:
		p.add(at(v.Node), "wait: give it either for, a time, or until, a shell text")
	case hasUntil && !hasLimit:
		p.add(at(v.Node), "wait has no limit: say after what time it is too late")
	}
	for _, name := range []string{"every", "limit", "on_late"} {
		if one, ok := seen[name]; ok && !hasUntil {
			p.add(at(one.keyNode), "%s is for a wait with until", name)
		}
	}
	return w
}

func waitKeys() []key[WaitSpec] {
	return []key[WaitSpec]{
		{"for", func(p *parser, v value, w *WaitSpec) { w.For = p.span(v) }},
		{"until", func(p *parser, v value, w *WaitSpec) { w.Until = p.shell(v) }},
		{"every", func(p *parser, v value, w *WaitSpec) { w.Every = p.span(v) }},
		{"limit", func(p *parser, v value, w *WaitSpec) { w.Limit = p.span(v) }},
		{"release", func(p *parser, v value, w *WaitSpec) { w.Release = p.flag(v) }},
		{"on_late", func(p *parser, v value, w *WaitSpec) {
			text, ok := p.text(v, nameMax)
			if ok && text != "fail" && text != "unknown" {
				p.add(at(v.Node), "on_late %s: want fail or unknown", brief(text))
			}
			w.OnLate = text
		}},
	}
}

// span reads a duration or the placeholder for one.
func (p *parser) span(v value) Span {
	ref, found := strings.CutPrefix(v.Value, "{{")
	ref, closed := strings.CutSuffix(ref, "}}")
	if !v.isScalar() || !found || !closed {
		d, _ := p.duration(v, time.Second, waitMax)
		return Span{Time: d}
	}
	a := p.argument(ref)
	switch {
	case strings.HasPrefix(ref, savedPrefix):
		p.uses(at(v.Node), strings.TrimPrefix(ref, savedPrefix))
	case a == nil || a.Type != TypeDuration:
		p.add(at(v.Node), "%s: {{%s}} is no argument of type duration, and no saved value", v.key, ref)
	}
	return Span{Ref: ref}
}

func waitTypes() property {
	return object(keyNames(waitKeys()), property{"release": property{"type": "boolean"}})
}

func readVerify(p *parser, v value) *VerifySpec {
	s := &VerifySpec{Probes: DefaultProbes()}
	seen := readMapping(p, v, verifyKeys(), s)
	if _, ok := seen["check"]; !ok && v.isMapping() {
		p.add(at(v.Node), "verify has no check: give it a shell text that exits with 0 if all is "+
			"well, with %d if it is not so yet", NotYet)
	}
	return s
}

func verifyKeys() []key[VerifySpec] {
	return []key[VerifySpec]{
		{"check", func(p *parser, v value, s *VerifySpec) { s.Check = p.shell(v) }},
		{"unreachable", func(p *parser, v value, s *VerifySpec) {
			readMapping(p, v, awayKeys(), &s.Unreachable)
		}},
		{"not_ready", func(p *parser, v value, s *VerifySpec) {
			readMapping(p, v, readyKeys(), &s.NotReady)
		}},
	}
}

func verifyTypes() property { return object(keyNames(verifyKeys()), probesTypes()) }

func readReboot(p *parser, v value) *RebootSpec {
	s := &RebootSpec{Probes: DefaultProbes()}
	readMapping(p, v, rebootKeys(), s)
	return s
}

func rebootKeys() []key[RebootSpec] {
	return []key[RebootSpec]{
		{"command", func(p *parser, v value, s *RebootSpec) { s.Command = p.shell(v) }},
		{"ready", func(p *parser, v value, s *RebootSpec) { s.Ready = p.shell(v) }},
		{"unreachable", func(p *parser, v value, s *RebootSpec) {
			readMapping(p, v, awayKeys(), &s.Unreachable)
		}},
		{"not_ready", func(p *parser, v value, s *RebootSpec) {
			readMapping(p, v, readyKeys(), &s.NotReady)
		}},
	}
}

func rebootTypes() property { return object(keyNames(rebootKeys()), probesTypes()) }

// probesTypes are the types of the keys of Probes.
func probesTypes() property {
	number := property{"probes": property{"type": "integer"}}
	return property{"unreachable": object(keyNames(awayKeys()), number),
		"not_ready": object(keyNames(readyKeys()), number)}
}

func awayKeys() []key[AwayProbes] {
	return []key[AwayProbes]{
		{"every", func(p *parser, v value, a *AwayProbes) {
			a.Every, _ = p.duration(v, time.Second, delayMax)
		}},
		{"probes", func(p *parser, v value, a *AwayProbes) { a.Probes = p.probes(v) }},
	}
}

func readyKeys() []key[ReadyProbes] {
	return []key[ReadyProbes]{
		{"first", func(p *parser, v value, r *ReadyProbes) {
			r.First, _ = p.duration(v, time.Second, delayMax)
		}},
		{"more", func(p *parser, v value, r *ReadyProbes) { r.More, _ = p.duration(v, 0, delayMax) }},
		{"probes", func(p *parser, v value, r *ReadyProbes) { r.Probes = p.probes(v) }},
	}
}

func (p *parser) probes(v value) int {
	n, _ := p.number(v, 1, probesMax)
	return int(n)
}
