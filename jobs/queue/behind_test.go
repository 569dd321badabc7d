package queue

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// Script is one of the scripts with a text in front of it, for tests that shift
// the clock or stop it half way. One that is called as a function is one here too.
type Script struct {
	*redis.Script
	library
}

// ScriptBehind puts a text in front of a script. What the text needs goes into
// KEYS 2 and up.
func ScriptBehind(text, name string) Script {
	for _, s := range []*script{scripts.put, scripts.step, scripts.checkpoint, scripts.lose,
		scripts.end, scripts.move, scripts.epoch, scripts.control, scripts.order,
		scripts.speak, scriptRoll, scriptAppoint, scriptRecall, scriptAsk} {
		if s.name == name {
			behind := Script{Script: redis.NewScript(text + s.text)}
			if s.function != "" {
				const begins = "call, ARGV = redis.call, args"
				_, code, _ := strings.Cut(s.code, libraryHead)
				code, _, _ = strings.Cut(code, "redis.register_function")
				behind.library = newLibrary(name, strings.Replace(code, begins, "local KEYS = keys\n"+text+begins, 1))
			}
			return behind
		}
	}
	panic("there is no script " + name)
}

// Call calls it in a zone.
func (s Script) Call(ctx context.Context, c redis.Scripter, zone string, more []string,
	args ...any) ([]any, error) {
	keys := append([]string{zoneKey(zone, "zone", "")}, more...)
	if s.function == "" {
		return s.Run(ctx, c, keys, args...).Slice()
	}
	v, err := c.(*redis.Client).FCall(ctx, s.function, keys, args...).Slice()
	if isUnknownFunction(err) {
		if err := c.(*redis.Client).FunctionLoad(ctx, s.code).Err(); err != nil {
			return nil, err
		}
		return c.(*redis.Client).FCall(ctx, s.function, keys, args...).Slice()
	}
	if isNoFunctions(err) {
		return s.Run(ctx, c, keys, args...).Slice()
	}
	return v, err
}

// StepArgs are the arguments of the script step.
func StepArgs(s jobs.Step, expected, stamp string) []any {
	args := []any{s.Node, s.Slot, s.Request, s.Want, expected, known(s.Known), stamp, len(s.Results)}
	for _, r := range s.Results {
		args = appendResult(args, r)
	}
	return args
}

// HeadArgs are the fields of a task that stand behind the arguments of its first
// chunk.
func HeadArgs(t jobs.Task, hosts, chunks int) []any { return headArgs(t, hosts, chunks) }

// ReadReply reads the answer of the script step.
func ReadReply(v []any) (jobs.Reply, error) {
	if len(v) == 2 {
		r := reader{v: v}
		return jobs.Reply{Status: jobs.Status(r.text()), Now: r.micros()}, r.err
	}
	return readReply(reader{v: v})
}

// ReadGrant reads a grant as it is kept.
func ReadGrant(text string) (jobs.Grant, error) { return readGrant(text, "") }

// GuardOf is the field guard of a task.
func GuardOf(t jobs.Task) string { return guard(t) }

// RuleArgs are the fields of a task that has a rule.
func RuleArgs(r *jobs.Rollout) []any { return ruleArgs(r) }

// Texts turns an answer into texts and lists of texts.
func Texts(v []any) (out []any) {
	for _, x := range v {
		if list, ok := x.([]any); ok {
			out = append(out, Texts(list))
			continue
		}
		out = append(out, fmt.Sprint(x))
	}
	return out
}

// AppointArgs are the arguments of the script appoint.
func AppointArgs(id jobs.TaskID, moves []jobs.Move) []any { return appointArgs(id, moves) }

// Times are when the jobs of hosts are to run, as the script put reads it.
func Times(t jobs.Task, hosts []string) string { return timesOf(t, hosts) }
