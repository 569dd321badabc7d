// Package notify decides who is told what: it reads the rules of a file, matches what happened
// against them, groups what belongs together, and writes the words of a message. It is pure: time
// and what is known are arguments.
//
// Floor 3: may import fleet, jobs, internal/strictyaml and what is below.
package notify
