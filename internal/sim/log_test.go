package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// A log is that of a worker. The line that an attempt logs at its beginning, and at its end, is a visit
// to the world: so of two attempts at one instant the world decides which goes on first.
type log struct {
	hclog.Logger
	c     *child
	named []any // what each line names
}

func (d doors) log() hclog.Logger { return log{hclog.NewNullLogger(), d.c, nil} }

// With keeps the lines visits to the world.
func (l log) With(args ...any) hclog.Logger {
	l.named = slices.Concat(l.named, args)
	return l
}

func (l log) Debug(text string, args ...any) { l.attempt(text, args) }
func (l log) Info(text string, args ...any)  { l.attempt(text, args) }
func (l log) Warn(text string, args ...any)  { l.attempt(text, args) }

// Error is for what must never happen.
func (l log) Error(text string, args ...any) {
	said := fmt.Sprint(text, " ", l.named, args)
	l.c.comes(&visit{name: l.c.name + " errs " + said, do: func() {
		l.c.then(func() { l.c.broken("worker %s: %s", l.c.name, said) })
	}})
}

// attempt has an attempt wait for its turn.
func (l log) attempt(text string, args []any) {
	if !strings.HasPrefix(text, "the attempt ") {
		return
	}
	all := slices.Concat(l.named, args)
	job := all[slices.Index(all, any("job"))+1]
	l.c.visit(fmt.Sprint(text, job), func(v *visit) {
		l.c.after(l.c.latency(), func() { l.c.answer(v, nil) })
	})
}
