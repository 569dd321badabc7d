package queue

import (
	"context"
	_ "embed"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/form"
	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

// The scripts, one file each. Each begins with its contract.
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
	//go:embed lua/shared/fast.lua
	luaFast string
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
	//go:embed lua/reorder.lua
	luaReorder string
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

// Script is one script, with the names of the keys and the prelude in front of it. It is put
// together when it is first used: a worker calls four of twenty, and to make all of them took a
// third of the time in which a process starts.
type Script struct {
	name string
	made func() made
}

// made holds a script that was put together.
type made struct {
	*redis.Script
	text    string
	library // of a script that is called so often that a function is worth it
}

// load is a script of these texts. The seldom needed parts stand in one function, m.lazy, which the
// prelude calls when one of them is first used.
func load(name string, seldomNeeded []string, texts ...string) *Script {
	return &Script{name, sync.OnceValue(func() made { return put(seldomNeeded, texts...) })}
}

func put(seldomNeeded []string, texts ...string) made {
	return plain("local P, m = string.sub(KEYS[1], 1, -5), {}\n" + keys.Lua(keys.Usual) +
		form.Lua + luaScript + luaPrelude +
		"function m.lazy()\n" + keys.Lua(keys.Seldom) + luaJob + strings.Join(seldomNeeded, "") +
		"end\n" + "m.reset()\n" + strings.Join(texts, ""))
}

func plain(text string) made { return made{Script: redis.NewScript(text), text: text} }

// loadRun is a script whose text is a function, m.run: as a script, and as a library where Redis
// has functions.
func loadRun(name string, seldomNeeded []string, text string) *Script {
	return &Script{name, sync.OnceValue(func() made {
		s := put(seldomNeeded, text+"return m.run()\n")
		s.library = newLibrary(name, "function m.keys(P)\n"+keys.Lua(keys.Every)+"end\n"+
			form.Lua+luaPrelude+luaJob+strings.Join(seldomNeeded, "")+text+luaLibrary)
		return s
	})}
}

// Call calls the script in a zone: EVALSHA, and once EVAL if Redis does not know the script.
func (s *Script) Call(ctx context.Context, c redis.Scripter, zone string, args ...any) *redis.Cmd {
	return s.made().Run(hooks.Named(ctx, s.name), c, []string{keys.Zone(zone, "zone", "")}, args...)
}

// Redis returns the script as go-redis calls it.
func (s *Script) Redis() *redis.Script { return s.made().Script }

// Alone makes a script without a prelude: it uses keys of the hub.
func Alone(name, text string) *Script {
	return &Script{name, sync.OnceValue(func() made { return plain(text) })}
}

// Scripts are the scripts that several handles or the connection itself call.
var Scripts = struct {
	Put, Step, Checkpoint, Lose, End, Move, epoch, Control, Fsck, Reorder, Speak,
	Blob *Script

	Lead, Schedule, Tick *Script
}{
	Put: load("put", nil, luaFreeze, luaPut),
	Step: loadRun("step", []string{luaExclude, luaRule, luaSeldom, luaAgain, luaAsks},
		luaStep+luaFast),
	Checkpoint: load("checkpoint", nil, luaCheckpoint),
	Lose:       load("lose", []string{luaExclude, luaRule}, luaFreeze, luaLose),
	End:        load("end", []string{luaExclude, luaRule}, luaEnd),
	Move:       load("move", []string{luaRule}, luaMove),
	epoch:      load("epoch", []string{luaExclude, luaRule}, luaFreeze, luaEpoch),
	Control:    load("control", []string{luaExclude, luaRule}, luaControl),
	Fsck:       load("fsck", []string{luaExclude, luaRule}, luaFsck),
	Reorder:    load("reorder", nil, luaReorder),
	Speak:      load("speak", nil, luaSpeak),
	Blob:       load("blob", nil, luaBlob),
	Lead:       Alone("lead", luaLead),
	Schedule:   Alone("schedule", luaSchedule),
	Tick:       Alone("tick", luaTick),
}

// ScriptAppoint is the script for changed windows.
var ScriptAppoint = load("appoint", nil, luaAppoint)

// ScriptRoll is the script for tasks with a rule.
var ScriptRoll = load("roll", []string{luaExclude, luaRule}, luaRoll)

// ScriptRecall is the script for facts that only history knows.
var ScriptRecall = load("recall", []string{luaExclude, luaRule}, luaRecall)

// ScriptAsk is the script for jobs that ended unknown, and whose hosts are asked.
var ScriptAsk = load("ask", []string{luaExclude, luaRule, luaAsks}, luaAsk)
