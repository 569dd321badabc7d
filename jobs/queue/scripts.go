package queue

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// The scripts, one file each. Their contracts stand at their heads.
var (
	//go:embed lua/shared/script.lua
	luaScript string
	//go:embed lua/shared/library.lua
	luaLibrary string
	//go:embed lua/shared/prelude.lua
	luaPrelude string
	//go:embed lua/shared/job.lua
	luaJob string
	//go:embed lua/shared/seldom.lua
	luaSeldom string
	//go:embed lua/shared/exclude.lua
	luaExclude string
	//go:embed lua/shared/rule.lua
	luaRule string
	//go:embed lua/shared/again.lua
	luaAgain string
	//go:embed lua/shared/freeze.lua
	luaFreeze string
	//go:embed lua/put.lua
	luaPut string
	//go:embed lua/step.lua
	luaStep string
	//go:embed lua/checkpoint.lua
	luaCheckpoint string
	//go:embed lua/lose.lua
	luaLose string
	//go:embed lua/end.lua
	luaEnd string
	//go:embed lua/move.lua
	luaMove string
	//go:embed lua/epoch.lua
	luaEpoch string
	//go:embed lua/roll.lua
	luaRoll string
	//go:embed lua/appoint.lua
	luaAppoint string
	//go:embed lua/control.lua
	luaControl string
	//go:embed lua/fsck.lua
	luaFsck string
	//go:embed lua/order.lua
	luaOrder string
	//go:embed lua/speak.lua
	luaSpeak string
	//go:embed lua/recall.lua
	luaRecall string
	//go:embed lua/shared/ask.lua
	luaAsks string
	//go:embed lua/ask.lua
	luaAsk string
	//go:embed lua/blob.lua
	luaBlob string
	//go:embed lua/lead.lua
	luaLead string
	//go:embed lua/schedule.lua
	luaSchedule string
	//go:embed lua/tick.lua
	luaTick string
)

// Quiet keeps go-redis from writing its own lines to standard error: every error
// it has comes back from the call that met it. For main, before anything else.
func Quiet() { redis.SetLogger(silence{}) }

type silence struct{}

// Printf says nothing.
func (silence) Printf(context.Context, string, ...any) {}

// script is one script with the names of the keys and the prelude before it.
type script struct {
	name, text string
	*redis.Script
	library // of a script that is called so often that it is better a function
}

// load puts a script together. What is seldom needed stands inside one function,
// m.lazy, which the prelude calls when something of it is first asked for.
func load(name string, seldomNeeded []string, texts ...string) *script {
	return newScript(name, "local P, m = string.sub(KEYS[1], 1, -5), {}\n"+luaKeys(usual)+
		luaScript+luaPrelude+
		"function m.lazy()\n"+luaKeys(seldom)+luaJob+strings.Join(seldomNeeded, "")+"end\n"+
		"m.reset()\n"+strings.Join(texts, ""))
}

func newScript(name, text string) *script {
	return &script{name: name, text: text, Script: redis.NewScript(text)}
}

// loadRun puts a script together whose text is a function, m.run: a script, and a
// library where Redis takes one.
func loadRun(name string, seldomNeeded []string, text string) *script {
	s := load(name, seldomNeeded, text+"return m.run()\n")
	s.library = newLibrary(name, "function m.keys(P)\n"+luaKeys(every)+"end\n"+
		luaPrelude+luaJob+strings.Join(seldomNeeded, "")+text+luaLibrary)
	return s
}

// run calls the script in a zone: EVALSHA, and EVAL once where it is not known.
func (s *script) run(ctx context.Context, c redis.Scripter, zone string, args ...any) *redis.Cmd {
	return s.Run(ctx, c, []string{zoneKey(zone, "zone", "")}, args...)
}

// alone is a script that nothing stands before: it works on keys of the hub.
func alone(name, text string) *script { return newScript(name, text) }

var scripts = struct {
	put, step, checkpoint, lose, end, move, epoch, control, fsck, order, speak,
	blob *script

	lead, schedule, tick *script
}{
	put:        load("put", nil, luaFreeze, luaPut),
	step:       loadRun("step", []string{luaExclude, luaRule, luaSeldom, luaAgain, luaAsks}, luaStep),
	checkpoint: load("checkpoint", nil, luaCheckpoint),
	lose:       load("lose", []string{luaExclude, luaRule}, luaFreeze, luaLose),
	end:        load("end", []string{luaExclude, luaRule}, luaEnd),
	move:       load("move", []string{luaRule}, luaMove),
	epoch:      load("epoch", []string{luaExclude, luaRule}, luaFreeze, luaEpoch),
	control:    load("control", []string{luaExclude, luaRule}, luaControl),
	fsck:       load("fsck", []string{luaExclude, luaRule}, luaFsck),
	order:      load("order", nil, luaOrder),
	speak:      load("speak", nil, luaSpeak),
	blob:       load("blob", nil, luaBlob),
	lead:       alone("lead", luaLead),
	schedule:   alone("schedule", luaSchedule),
	tick:       alone("tick", luaTick),
}

// scriptAppoint is the one of changed windows.
var scriptAppoint = load("appoint", nil, luaAppoint)

// scriptRoll is the one of tasks with a rule.
var scriptRoll = load("roll", []string{luaExclude, luaRule}, luaRoll)

// scriptRecall is the one of what only history knows.
var scriptRecall = load("recall", []string{luaExclude, luaRule}, luaRecall)

// scriptAsk is the one of jobs that ended unknown, and of which somebody wants to know more.
var scriptAsk = load("ask", []string{luaExclude, luaRule, luaAsks}, luaAsk)

// reader takes the parts of a script's answer in order and keeps the first
// error: an answer of another form is a bug or another version, never a guess.
type reader struct {
	v     []any
	err   error
	acked int // replicas that have what the script did, if anybody asked for some
}

func (r *reader) next() any {
	if len(r.v) == 0 {
		r.fail(errors.New("answer is too short"))
		return nil
	}
	x := r.v[0]
	r.v = r.v[1:]
	return x
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) text() string {
	switch x := r.next().(type) {
	case string:
		return x
	case nil:
		return ""
	case int64:
		return strconv.FormatInt(x, 10)
	default:
		r.fail(fmt.Errorf("answer has %T where text was expected", x))
		return ""
	}
}

func (r *reader) micros() jobs.Micros {
	m, err := jobs.ParseMicros(r.text())
	if err != nil {
		r.fail(err)
	}
	return m
}

func (r *reader) int() int { return int(r.micros()) }

func (r *reader) duration() time.Duration { return time.Duration(r.micros()) * time.Microsecond }

func (r *reader) list() reader {
	v, ok := r.next().([]any)
	if !ok {
		r.fail(errors.New("answer lacks a list"))
	}
	return reader{v: v}
}

func (r *reader) texts() []string {
	l := r.list()
	out := make([]string, 0, len(l.v))
	for len(l.v) > 0 && l.err == nil {
		out = append(out, l.text())
	}
	if l.err != nil {
		r.fail(l.err)
	}
	return out
}
