// Package notify decides who is told what: it reads the rules of a file, matches what happened
// against them, groups what belongs together, and writes the words of a message. It is pure: time
// and what is known are arguments.
//
// Floor 2: may import fleet, jobs, scripts and internal/wording.
package notify
