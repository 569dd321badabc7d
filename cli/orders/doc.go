// Package orders has the commands that change the course of tasks: cancel, retry, pause,
// resume, halt, gate, rollout.
//
// Floor 6: may import cli/submit and below.
package orders
