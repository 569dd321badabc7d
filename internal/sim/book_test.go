package sim

import (
	"encoding/json"
	"fmt"
	"time"

	"muster/jobs"
	"muster/scripts"
)

// This file makes the tasks: what their steps are to the host, and to the worker.

// A plan lists the steps of a task on each host.
type plan struct {
	steps       []stage
	repeatable  bool
	disruptive  bool
	window      bool
	needs       []string
	unreachable float64 // chances
	fails       float64
}

// A stage is a step of a runbook.
type stage struct {
	takes, timeout time.Duration
	expect         time.Duration // that it takes, as far as is known
	pause          time.Duration // so long the job waits, at a gate at most
	kind           stageKind
	tries          int
}

// stageKind is the kind of a step.
type stageKind int

const (
	acting  stageKind = iota
	looking           // it changes nothing
	reboot
	waiting // it does nothing on the host
	gating  // nor does it; a person lets the job go on
)

// safe reports whether running the step twice is harmless: it changes nothing, or detects an
// earlier run.
func (s stage) safe() bool { return s.kind != acting }

// touches reports whether the step comes to the host as a command.
func (s stage) touches() bool { return s.kind != waiting && s.kind != gating }

// touching counts the steps that come to the host.
func (p plan) touching() (n int) {
	for _, s := range p.steps {
		if s.touches() {
			n++
		}
	}
	return n
}

// expects returns how long all steps take, as far as is known.
func (p plan) expects() (sum time.Duration) {
	for _, s := range p.steps {
		sum += s.expect
	}
	return sum
}

// longest is the longest bound of a step.
func (p plan) longest() (most time.Duration) {
	for _, s := range p.steps {
		most = max(most, s.timeout)
	}
	return most
}

// The commands of the steps name their index. The host knows them by it.
const (
	doIt    = "step %d"
	isReady = "ready %d"
	askBoot = "cat /proc/sys/kernel/random/boot_id"
)

// step returns a stage as a worker knows it.
func (p plan) step(i int) scripts.Step {
	s := p.steps[i]
	command := fmt.Sprintf(doIt, i)
	step := scripts.Step{Name: fmt.Sprint("s", i), Timeout: s.timeout, Repeatable: p.repeatable,
		Disruptive: p.disruptive}
	switch s.kind {
	case acting:
		step.Kind, step.Run = scripts.KindRun, command
		if s.tries > 0 {
			code := scripts.NotYet
			step.Retry = &scripts.Again{Tries: s.tries, Delay: 20 * time.Second}
			step.Classes = []scripts.ClassRule{{Exit: &code, Class: scripts.ClassTransient}}
		}
	case looking:
		step.Kind, step.Run = scripts.KindCheck, command
	case reboot:
		step.Kind = scripts.KindReboot
		step.Spec = &scripts.RebootSpec{Command: command, Ready: fmt.Sprintf(isReady, i),
			Probes: scripts.DefaultProbes()}
	case gating:
		step.Kind = scripts.KindGate
		step.Spec = &scripts.GateSpec{Question: "go on?", Timeout: scripts.Span{Time: s.pause}, Release: !p.disruptive}
	case waiting:
		step.Kind = scripts.KindWait
		step.Spec = &scripts.WaitSpec{For: scripts.Span{Time: s.pause}, Release: !p.disruptive}
	}
	return step
}

// spec is that of a task.
func (p plan) spec() jobs.Spec {
	policy := jobs.DefaultPolicy()
	book := scripts.Frozen{Runbook: runbook, Disruptive: p.disruptive, Repeatable: p.repeatable,
		Timeout: p.longest(), Retry: scripts.Retry{Submit: policy.Tries, Delay: policy.Delay}}
	for i := range p.steps {
		book.Steps = append(book.Steps, p.step(i))
	}
	action, err := json.Marshal(book)
	if err != nil {
		panic(err)
	}
	return jobs.Spec{Runbook: runbook, Inventory: "v1", Timeout: jobs.AttemptTimeout(p.longest()),
		Expire: 8 * time.Hour, Repeatable: p.repeatable, Needs: p.needs, Retry: policy, Action: action,
		Terms: jobs.Terms{Disruptive: p.disruptive}, Timing: jobs.Timing{Window: p.window, Expect: p.expects()}}
}
