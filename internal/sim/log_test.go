package sim

import (
	"fmt"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// A log is that of a worker. The line that an attempt logs at its beginning, and at its end, is a visit
// to the world: so of two attempts at one instant the world decides which goes on first.
type log struct {
	hclog.Logger
	c *child
}

func (d doors) log() hclog.Logger { return log{hclog.NewNullLogger(), d.c} }

func (l log) Debug(text string, args ...any) { l.attempt(text, args) }
func (l log) Info(text string, args ...any)  { l.attempt(text, args) }
func (l log) Warn(text string, args ...any)  { l.attempt(text, args) }

// Error is for what must never happen.
func (l log) Error(text string, args ...any) {
	said := fmt.Sprint(text, " ", args)
	l.c.comes(&visit{name: l.c.name + " errs " + said, do: func() {
		l.c.then(func() { l.c.broken("worker %s: %s", l.c.name, said) })
	}})
}

// attempt has an attempt wait for its turn.
func (l log) attempt(text string, args []any) {
	if !strings.HasPrefix(text, "the attempt ") {
		return
	}
	l.c.visit(fmt.Sprint(text, args[1]), func(v *visit) {
		l.c.after(l.c.latency(), func() { l.c.answer(v, nil) })
	})
}
