package scripts

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // confirm.sh
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
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
// time, and each ends its output with the state of the change; see ReadConfirm.
type Confirm struct {
	Arm     string // guard, arm, apply
	Prove   string // over a new connection
	Confirm string // and keep
	Back    string // revert the change now
	State   string // only report the state
	Within  time.Duration
	Probes  []Probe
}

// Probe is one condition that must hold before a change is confirmed.
type Probe struct {
	TCP string // host:port that must accept connections from the worker's node; or:
	Run string // a shell text that must exit with 0 on the host
}

// String returns the probe in the syntax of runbooks.
func (p Probe) String() string {
	if p.TCP != "" {
		return "tcp " + p.TCP
	}
	return "run " + p.Run
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
	probes, err := readProbes(in.args[c.Probes], in.host.Address)
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

// readProbes reads one probe a line. A port without a host means the host of the job.
func readProbes(text, address string) ([]Probe, error) {
	var list []Probe
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		kind, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case line == "":
		case kind == "run" && rest != "":
			list = append(list, Probe{Run: rest})
		case kind == "tcp":
			host, port, err := net.SplitHostPort(rest)
			if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 1 || n > 65535 {
				return nil, fmt.Errorf("%s: want tcp HOST:PORT, or tcp :PORT of the host itself", brief(line))
			}
			if host == "" {
				host = address
			}
			list = append(list, Probe{TCP: net.JoinHostPort(host, port)})
		default:
			return nil, fmt.Errorf("%s: want tcp HOST:PORT or run COMMAND, one a line", brief(line))
		}
	}
	if len(list) > rulesMax {
		return nil, fmt.Errorf("%d probes: at most %d", len(list), rulesMax)
	}
	return list, nil
}

// Shell returns the text that runs the probe on the host.
func (p Probe) Shell() string {
	word, err := quote(p.Run)
	if err != nil {
		return "exit 2" // no argument contains a NUL
	}
	return "exec sh -c -- " + word
}

// Confirmation is the state of a change as the host last reported it.
type Confirmation struct {
	State ConfirmState
	Code  int           // of guard, prove, keep or the rollback, whichever ran last; -1: unknown
	Left  time.Duration // armed: time until the host reverts it
	More  string        // which change is pending, or why this one was reverted
}

// ConfirmState is the state of a change.
type ConfirmState string

// The states of a change.
const (
	ConfirmNone       ConfirmState = "none"       // nothing was done; Code is that of the guard
	ConfirmBusy       ConfirmState = "busy"       // another change is pending
	ConfirmArmed      ConfirmState = "armed"      // may have been made, and is not confirmed
	ConfirmProof      ConfirmState = "proof"      // likewise, and Code is that of the proof
	ConfirmConfirmed  ConfirmState = "confirmed"  // permanent; Code is that of keep
	ConfirmRolledBack ConfirmState = "rolledback" // Code is that of the rollback
)

// String describes the state for people.
func (c Confirmation) String() string {
	switch c.State {
	case ConfirmNone:
		if c.Code <= 0 { // not the same as 0: the host may have forgotten it
			return "the host knows of none"
		}
		return "nothing was done"
	case ConfirmBusy:
		return "another change is pending, of job " + plainOr(c.More)
	case ConfirmArmed:
		return fmt.Sprintf("made, and taken back in %s unless it is confirmed", c.Left)
	case ConfirmProof:
		return fmt.Sprintf("proof, exit %d, with %s left", c.Code, c.Left)
	case ConfirmConfirmed:
		return "confirmed"
	case ConfirmRolledBack:
		return strings.TrimSpace("taken back, exit " + strconv.Itoa(c.Code) + " " + plainOr(c.More))
	}
	return string(c.State)
}

// plainOr returns a plain word of a host, with its number if it has one, unchanged. It quotes
// anything else, because the result becomes part of our own messages.
func plainOr(said string) string {
	if said == "" || reasonWord.MatchString(said) {
		return said
	}
	return strconv.Quote(said)
}

var reasonWord = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,80}( [0-9]{1,3})?$`)

// ConfirmMark begins the last line of a host's output, which reports the state of a change.
// The text before it may lack a newline at its end.
const ConfirmMark = "muster-confirm: "

var confirmLine = regexp.MustCompile(`^([a-z]+)((?: \S+)*) *$`)

// ReadConfirm parses the last line of the host; it returns false if the line reports no state.
func ReadConfirm(line string) (Confirmation, bool) {
	at := strings.LastIndex(line, ConfirmMark)
	if at < 0 {
		return Confirmation{}, false
	}
	m := confirmLine.FindStringSubmatch(strings.TrimRight(line[at+len(ConfirmMark):], "\r\n"))
	if m == nil {
		return Confirmation{}, false
	}
	words := append(strings.Fields(m[2]), "", "", "")
	c := Confirmation{State: ConfirmState(m[1]), Code: -1}
	number := func(s string) int {
		if n, err := strconv.Atoi(s); err == nil {
			return n
		}
		return -1
	}
	switch c.State {
	case ConfirmNone:
		c.Code = number(words[1])
	case ConfirmBusy:
		c.Left, c.More = time.Duration(number(words[0]))*time.Second, words[1]
	case ConfirmArmed:
		c.Left = time.Duration(number(words[0])) * time.Second
	case ConfirmProof:
		c.Code, c.Left = number(words[0]), time.Duration(number(words[1]))*time.Second
	case ConfirmConfirmed:
		c.Code = number(words[0])
	case ConfirmRolledBack:
		c.Code, c.More = number(words[0]), strings.TrimSpace(strings.Join(words[1:], " "))
	default:
		return Confirmation{}, false
	}
	return c, true
}
