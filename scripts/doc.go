// Package scripts knows runbooks: their language, the built-in ones, and the form of
// each of their steps for a given host.
//
// Parse reads a runbook, Runbook.Bind checks its arguments, and Runbook.Freeze
// combines both to the form that a task contains. A worker asks that form for one
// step at a time and gets an Action: a shell text, or a file and its
// destination.
//
// Values are data. They enter a shell text only as one quoted word, and Parse
// refuses a runbook that has a placeholder where quoting would not protect it.
//
// It is pure: it gets bytes and never reads a file, a network or a clock. It
// runs nothing, reaches no host and knows neither jobs nor outcomes. The
// language for users is described in docs/RUNBOOKS.md.
//
// Floor 1: may import fleet, internal/jsonpath, internal/trial, a YAML reader and a shell parser.
package scripts
