package queue

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Behind is one of the scripts with a text in front of it, for tests that shift the clock or stop
// the script between two writes. A script that is called as a function is called as one here too.
type Behind struct {
	*redis.Script
	library
	text string
}

// SlowScriptBehind is ScriptBehind without the short ways of step.
func SlowScriptBehind(text, name string) Behind {
	s := ScriptBehind(text, name)
	if name != "step" {
		return s
	}
	if !strings.Contains(s.text, luaFast) || s.function != "" && !strings.Contains(s.code, luaFast) {
		panic("lua/shared/fast.lua is no part of step: it is not known what to leave out")
	}
	slow := strings.Replace(s.text, luaFast, "", 1)
	s.Script, s.text = redis.NewScript(slow), slow
	if s.function != "" {
		_, code, _ := strings.Cut(s.code, libraryHead)
		code, _, _ = strings.Cut(code, "redis.register_function")
		s.library = newLibrary(name, strings.Replace(code, luaFast, "", 1))
	}
	return s
}

// ScriptBehind puts a text in front of a script. The parameters of the text go into KEYS 2 and up.
func ScriptBehind(text, name string) Behind {
	for _, s := range []*Script{Scripts.Put, Scripts.Step, Scripts.Checkpoint, Scripts.Lose,
		Scripts.End, Scripts.Move, Scripts.epoch, Scripts.Control, Scripts.Reorder,
		Scripts.Speak, ScriptRoll, ScriptAppoint, ScriptRecall, ScriptAsk} {
		if s.name == name {
			s := s.made()
			behind := Behind{Script: redis.NewScript(text + s.text), text: text + s.text}
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

// Call calls the script in a zone.
func (s Behind) Call(ctx context.Context, c redis.Scripter, zone string, more []string,
	args ...any) ([]any, error) {
	names := append([]string{keys.Zone(zone, "zone", "")}, more...)
	if s.function == "" {
		return s.Run(ctx, c, names, args...).Slice()
	}
	v, err := c.(*redis.Client).FCall(ctx, s.function, names, args...).Slice()
	if isUnknownFunction(err) {
		if err := c.(*redis.Client).FunctionLoad(ctx, s.code).Err(); err != nil {
			return nil, err
		}
		return c.(*redis.Client).FCall(ctx, s.function, names, args...).Slice()
	}
	if isNoFunctions(err) {
		return s.Run(ctx, c, names, args...).Slice()
	}
	return v, err
}

// StepArgs returns the arguments of the script step.
func StepArgs(s jobs.Step, expected, stamp string) []any {
	args := []any{s.Node, s.Slot, s.Request, s.Want, expected, codec.Known(s.Known), stamp, len(s.Results)}
	for _, r := range s.Results {
		args = codec.AppendResult(args, r, "")
	}
	return args
}

// ReadReply reads the answer of the script step.
func ReadReply(v []any) (jobs.Reply, error) {
	if len(v) == 2 {
		r := codec.Reader{Left: v}
		return jobs.Reply{Status: jobs.Status(r.Text()), Now: r.Micros()}, r.Err
	}
	return codec.ReadReply(codec.Reader{Left: v})
}

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
