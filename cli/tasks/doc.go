// Package tasks has the commands that run tasks and show them: run, exec, tasks, jobs, wait, logs,
// events, secrets.
//
// Floor 6: may import cli/submit and below.
package tasks
