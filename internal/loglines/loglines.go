// Package loglines adds to lines of the log what follows from what they say.
//
// Floor 3: may import jobs, jobs/trace.
package loglines

import (
	"github.com/hashicorp/go-hclog"

	"muster/jobs"
	"muster/jobs/trace"
)

// WithTraces returns a logger whose lines about a job have the id of its trace behind them.
func WithTraces(l hclog.Logger) hclog.Logger { return logger{Logger: l} }

type logger struct {
	hclog.Logger
	has bool // all lines are about a job, and have its trace
}

// more returns the arguments of a line with the trace of its job.
func (l logger) more(args []any) []any {
	if l.has {
		return args
	}
	if id, ok := jobOf(args); ok {
		return append(args[:len(args):len(args)], "trace", trace.OfJob(id).String())
	}
	return args
}

// jobOf returns the job that a line names.
func jobOf(args []any) (jobs.ID, bool) {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] != "job" {
			continue
		}
		switch id := args[i+1].(type) {
		case jobs.ID:
			return id, id != ""
		case string:
			parsed, err := jobs.ParseID(id)
			return parsed, err == nil
		}
	}
	return "", false
}

func (l logger) Log(level hclog.Level, msg string, args ...any) {
	l.Logger.Log(level, msg, l.more(args)...)
}

func (l logger) Trace(msg string, args ...any) { l.Logger.Trace(msg, l.more(args)...) }
func (l logger) Debug(msg string, args ...any) { l.Logger.Debug(msg, l.more(args)...) }
func (l logger) Info(msg string, args ...any)  { l.Logger.Info(msg, l.more(args)...) }
func (l logger) Warn(msg string, args ...any)  { l.Logger.Warn(msg, l.more(args)...) }
func (l logger) Error(msg string, args ...any) { l.Logger.Error(msg, l.more(args)...) }

func (l logger) With(args ...any) hclog.Logger {
	_, has := jobOf(args)
	return logger{l.Logger.With(l.more(args)...), l.has || has}
}

func (l logger) Named(name string) hclog.Logger { return logger{l.Logger.Named(name), l.has} }

func (l logger) ResetNamed(name string) hclog.Logger {
	return logger{l.Logger.ResetNamed(name), l.has}
}
