package scripts

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // confirm.sh
	"fmt"
	"strings"
	"time"

	"muster/internal/trial"
)

// This file defines the kind confirm: a change that the host reverts by itself unless it is
// proven over a new connection and confirmed in time.

//go:embed confirm.sh
var confirmText string

// ConfirmSpec is a step of kind confirm in a runbook. All its texts except within and probes
// are for the shell; $MUSTER_DIR is the folder of the change.
type ConfirmSpec struct {
	Guard    string `json:"guard,omitempty"` // prepares what the rollback needs
	Apply    string `json:"apply"`
	Rollback string `json:"rollback"`
	Prove    string `json:"prove,omitempty"` // over a new connection; empty: connecting is proof
	Keep     string `json:"keep,omitempty"`  // makes the confirmed change permanent
	Within   Span   `json:"within"`
	Probes   string `json:"probes,omitempty"` // the argument that contains them
}

// Confirm is a step of kind confirm for one host. Each text except Arm may run again at any
// time, and each ends its output with the state of the change; see package trial.
type Confirm struct {
	Arm     string // guard, arm, apply
	Prove   string // over a new connection
	Confirm string // and keep
	Back    string // revert the change now
	State   string // only report the state
	Within  time.Duration
	Probes  []trial.Probe
}

// withinDefault is the time for the proof; similar tools use the same.
const (
	withinDefault = 2 * time.Minute
	withinMin     = 10 * time.Second
	withinMax     = time.Hour
	defaultPlace  = "/var/lib/muster"
	onHostMax     = 100 << 10 // bytes of all texts of a change, because they go to the host together
)

func readConfirm(p *parser, v value) *ConfirmSpec {
	c := &ConfirmSpec{Within: Span{Time: withinDefault}}
	seen := readMapping(p, v, confirmKeys(), c)
	for _, must := range []string{"apply", "rollback"} {
		if _, ok := seen[must]; !ok && v.isMapping() {
			p.add(at(v.Node), "confirm has no %s: it needs apply, and the rollback that undoes it", must)
		}
	}
	if n := len(c.Guard) + len(c.Apply) + len(c.Rollback) + len(c.Prove) + len(c.Keep); n > onHostMax {
		p.add(at(v.Node), "the texts of confirm have %d bytes: at most %d", n, onHostMax)
	}
	return c
}

func confirmKeys() []key[ConfirmSpec] {
	return []key[ConfirmSpec]{
		{"guard", func(p *parser, v value, c *ConfirmSpec) { c.Guard = p.shell(v) }},
		{"apply", func(p *parser, v value, c *ConfirmSpec) { c.Apply = p.shell(v) }},
		{"rollback", func(p *parser, v value, c *ConfirmSpec) { c.Rollback = p.shell(v) }},
		{"prove", func(p *parser, v value, c *ConfirmSpec) { c.Prove = p.shell(v) }},
		{"keep", func(p *parser, v value, c *ConfirmSpec) { c.Keep = p.shell(v) }},
		{"within", func(p *parser, v value, c *ConfirmSpec) {
			c.Within = p.span(v)
			if c.Within.Ref == "" && (c.Within.Time < withinMin || c.Within.Time > withinMax) {
				p.add(at(v.Node), "within is %s: want %s to %s", c.Within.Time, withinMin, withinMax)
			}
		}},
		{"probes", func(p *parser, v value, c *ConfirmSpec) {
			name, ok := p.text(v, nameMax)
			if a := p.argument(name); ok && (a == nil || a.Type != TypeString) {
				p.add(at(v.Node), "probes: no argument %s of type string", brief(name))
			}
			c.Probes = name
		}},
	}
}

// fillConfirm fills in the change for one host.
func fillConfirm(f Frozen, c *ConfirmSpec, in scope, a *Action) error {
	change, err := c.fill(f, a.Name, in)
	a.Spec = change
	return err
}

// Confirm returns the change of a step of kind confirm; nil for steps of other kinds.
func (a Action) Confirm() *Confirm {
	c, _ := a.Spec.(*Confirm)
	return c
}

func confirmTypes() property { return object(keyNames(confirmKeys()), nil) }

// fill returns the change for one host; name is that of the step.
func (c *ConfirmSpec) fill(f Frozen, name string, in scope) (*Confirm, error) {
	within, err := c.Within.value(in, withinMin)
	if err == nil && within > withinMax {
		err = fmt.Errorf("{{%s}} is %s: at most %s", c.Within.Ref, within, withinMax)
	}
	if err != nil {
		return nil, fmt.Errorf("within: %w", err)
	}
	probes, err := trial.ReadProbes(in.args[c.Probes], in.host.Address)
	if err != nil {
		return nil, fmt.Errorf("probes: %w", err)
	}
	type text struct{ name, text string }
	texts := []text{{"guard", c.Guard}, {"apply", c.Apply},
		{"rollback", c.Rollback}, {"prove", c.Prove}, {"keep", c.Keep}}
	job := in.context.Task + ":" + in.host.Name
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(job)))[:16] + "-" + name
	head := fmt.Sprintf("id=%s; within=%d\n", id, int(within/time.Second))
	for _, one := range []text{{"job", job},
		{"place", cmp.Or(in.context.RecordDir, defaultPlace)}} {
		word, err := quote(one.text)
		if err != nil {
			return nil, err
		}
		head += one.name + "=" + word + "\n"
	}
	arm := head
	for _, one := range texts {
		text := one.text
		if text != "" {
			if text, err = f.shell(text, in); err != nil {
				return nil, fmt.Errorf("%s: %w", one.name, err)
			}
		}
		word, err := quote(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
		arm += one.name + "=" + word + "\n"
	}
	if len(arm) > onHostMax {
		return nil, fmt.Errorf("the texts of confirm have %d bytes with their values: at most %d",
			len(arm), onHostMax)
	}
	verb := func(head, verb string) string { return head + "verb=" + verb + "\n" + confirmScript() }
	return &Confirm{Arm: verb(arm, "arm"), Prove: verb(head, "prove"), Confirm: verb(head, "confirm"),
		Back: verb(head, "back"), State: verb(head, "state"), Within: within, Probes: probes}, nil
}

// confirmScript returns confirm.sh without comments, which is what hosts get.
func confirmScript() string {
	var b strings.Builder
	for line := range strings.Lines(confirmText) {
		if bare := strings.TrimLeft(line, "\t"); bare != "\n" && !strings.HasPrefix(bare, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}
