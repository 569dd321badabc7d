package scripts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// GateSpec is a step of kind gate in a runbook: the job waits for a person and continues
// when somebody has opened the gate.
type GateSpec struct {
	Question string `json:"question"` // text with placeholders
	Timeout  Span   `json:"timeout"`  // for the answer
	Release  bool   `json:"release,omitempty"`
	Dry      bool   `json:"dry,omitempty"` // only show the question, and wait for nobody
}

// Gate is a step of kind gate for one host.
type Gate struct {
	Question string        // for people; may contain output of hosts, and newlines
	Timeout  time.Duration // for the answer
	Release  bool          // releases the host while it waits
	Dry      bool          // only show the question, and wait for nobody
}

// The limits of a gate.
const (
	questionMax = 1000     // bytes of a question in the runbook
	askedMax    = 4 << 10  // bytes of a question with its values
	gateTimeout = 30 * day // for the answer, unless the runbook gives another
	day         = 24 * time.Hour
)

// saidByHosts marks values that hosts reported in earlier steps, so that nobody reads them as
// part of the question: it puts one line in double quotes, and '>' before each of several.
func saidByHosts(saved map[string]string) map[string]string {
	out := make(map[string]string, len(saved))
	for name, v := range saved {
		if out[name] = strconv.Quote(v); strings.Contains(v, "\n") {
			out[name] = "\n> " + strings.ReplaceAll(strings.TrimRight(v, "\n"), "\n", "\n> ") + "\n"
		}
	}
	return out
}

// fillGate fills in the gate for one host.
func fillGate(_ Frozen, g *GateSpec, in scope, a *Action) error {
	in.context.Saved = saidByHosts(in.context.Saved)
	text, err := render(g.Question, in, plain)
	if err != nil {
		return fmt.Errorf("question: %w", err)
	}
	timeout, err := g.Timeout.value(in, time.Second)
	a.Spec = &Gate{Question: asked(text), Timeout: timeout, Release: g.Release, Dry: g.Dry}
	return err
}

// asked cuts a question to its limit and marks the cut, because the person must know that
// there is more.
func asked(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "�"))
	if len(text) <= askedMax {
		return text
	}
	cut := askedMax
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes more)", text[:cut], len(text)-cut)
}

// Gate returns what a step of kind gate waits for; nil for steps of other kinds.
func (a Action) Gate() *Gate {
	g, _ := a.Spec.(*Gate)
	return g
}

// Gated reports whether a step waits for a person.
func (f Frozen) Gated() bool {
	return slices.ContainsFunc(f.Steps, func(s Step) bool {
		gate, is := s.Spec.(*GateSpec)
		return is && !gate.Dry
	})
}

func readGate(p *parser, v value) *GateSpec {
	g := &GateSpec{Timeout: Span{Time: gateTimeout}}
	seen := readMapping(p, v, gateKeys(), g)
	if _, ok := seen["question"]; !ok && v.isMapping() {
		p.add(at(v.Node), "gate has no question: say what the person is to look at, and to decide")
	}
	return g
}

func gateKeys() []key[GateSpec] {
	return []key[GateSpec]{
		{"question", func(p *parser, v value, g *GateSpec) { g.Question = p.question(v) }},
		{"timeout", func(p *parser, v value, g *GateSpec) { g.Timeout = p.span(v) }},
		{"release", func(p *parser, v value, g *GateSpec) { g.Release = p.flag(v) }},
	}
}

func gateTypes() property {
	return object(keyNames(gateKeys()), property{"release": property{"type": "boolean"}})
}

// question reads a text for a person. Its values need no quotes, because no shell reads it.
func (p *parser) question(v value) string {
	text, ok := p.text(v, questionMax)
	if !ok {
		return ""
	}
	if strings.TrimSpace(text) == "" {
		p.add(at(v.Node), "question is empty: say what the person is to look at, and to decide")
	}
	p.template(v, text)
	return text
}
