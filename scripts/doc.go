// Package scripts knows runbooks: their language, the built-in ones, and what
// each of their steps is on a given host.
//
// A runbook is read by Parse, its arguments are bound by Runbook.Bind, and
// Runbook.Freeze makes of both the form that a task carries. A worker asks that
// form for one step at a time and gets an Action: a shell text, or a file and
// where it belongs.
//
// Values are data. They enter a shell text only as one quoted word, and Parse
// refuses a runbook in which a placeholder stands where quoting cannot hold.
//
// It is pure: it gets bytes and never reads a file, a network or a clock. It
// runs nothing, reaches no host and knows neither jobs nor outcomes. The
// language for users is described in docs/RUNBOOKS.md.
//
// Floor 1: may import fleet, a YAML reader and a shell parser.
package scripts
