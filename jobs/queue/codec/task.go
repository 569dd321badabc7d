package codec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"muster/jobs"
)

// RulePrefix begins the name of the semaphore of a task with a rule. The task's own jobs hold it
// from their first take to their end; see rule.lua.
const RulePrefix = "rule:"

// RuleArgs returns the fields of a task that rule.lua and roll.lua read.
func RuleArgs(r *jobs.Rollout) []any {
	if r == nil {
		return nil
	}
	var args []any
	if r.MaxFailed != nil {
		args = append(args, "allowed", *r.MaxFailed)
	}
	if r.UnreachableOK {
		args = append(args, "lenient", digit(true))
	}
	if b := r.Breaker; b.Failures > 0 {
		args = append(args, "breaker", fmt.Sprintf("%d %d %d/%s", b.Failures, b.Within.Microseconds(),
			b.Failures, b.Within))
	}
	if len(r.Waves) > 0 {
		args = append(args, "waves", len(r.Waves), "wave", 1)
	}
	return args
}

// WaveScores tells put.lua the waves of the hosts of a chunk, which begins at the position from:
// "wave*hosts,…". It is empty if there are no waves.
func WaveScores(waves []int, from, hosts int) string {
	text := ""
	for i, n := range waves {
		take := min(max(n-from, 0), hosts)
		from = max(from-n, 0)
		if hosts -= take; take > 0 {
			text += strconv.Itoa(i+1) + "*" + strconv.Itoa(take) + ","
		}
	}
	return text
}

// Times encodes the times at which the jobs of hosts are to run, for put.lua.
func Times(t jobs.Task, hosts []string) string {
	if len(t.Own) == 0 {
		if t.At == 0 {
			return ""
		}
		return t.At.String()
	}
	all := make([]string, len(hosts)+1) // a trailing blank marks the text as a list
	for i, host := range hosts {
		all[i] = cmp.Or(t.Own[host], t.At).String()
	}
	return strings.Join(all, " ")
}

// HeadArgs returns the fields and values of a task, without its spec.
func HeadArgs(t jobs.Task, hosts, chunks int) []any {
	args := []any{"total", hosts, "chunks", chunks,
		"timeout", t.Spec.Timeout.Microseconds(), "expire", t.Spec.Expire.Microseconds(),
		"at", t.At.String(), "inventory", t.Spec.Inventory, "repeatable", digit(t.Spec.Repeatable),
		"operator", t.Spec.Operator, "priority", string(t.Spec.Priority)}
	if t.Guarded {
		args = append(args, "guard", Guard(t))
	}
	if len(t.Own) > 0 {
		args = append(args, "own", "1")
	}
	return append(args, RuleArgs(t.Spec.Rollout)...)
}

// Guard encodes for exclude.lua whether the task disturbs its hosts, the limits that its runbook
// names, and the semaphore of its own rule.
func Guard(t jobs.Task) string {
	words := []string{"-"}
	if t.Spec.Disruptive {
		words[0] = "d"
		if t.Spec.ProveGroup {
			words[0] = "p"
		}
	}
	words = append(words, t.Spec.Needs...)
	if t.Spec.Rollout != nil {
		words = append(words, RulePrefix+string(t.ID))
	}
	return strings.Join(words, " ")
}

// digit encodes a flag for the scripts.
func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// AppointArgs returns the arguments of appoint.lua.
func AppointArgs(id jobs.TaskID, moves []jobs.Move) []any {
	args := []any{string(id)}
	for _, m := range moves {
		args = append(args, m.Host, m.Was.String(), m.To.String())
	}
	return args
}
