package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/internal/proc"
	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

// A library is a script as a function of Redis (FUNCTION LOAD, FCALL). EVALSHA runs the whole text
// of a script at each call and so creates all its functions again; the functions of a library are
// created once. docs/decisions/0003-step-is-a-function.md has the figures.
//
// Its name contains the hash of its text, so two versions of muster can work side by side, and a
// library of the right name has the right text.
type library struct{ name, function, code string }

// libraries bounds the versions of a library that stay in a Redis.
const libraries = 4

// libraryHead makes locals of everything that scripts use of Lua, because a function finds a global
// only through a slower lookup.
const libraryHead = `local function globals()
  return string, math, table, cjson, tonumber, ipairs, pairs, unpack, rawget, string.sub, string.format
end
local string, math, table, cjson, tonumber, ipairs, pairs, unpack, rawget, sub, format
local m, call, ARGV = {}, nil, nil
`

// newLibrary makes a library of code that ends with lua/shared/library.lua. Its one function may
// write at maxmemory, because its first write frees memory; step.lua says what the function then
// refuses.
func newLibrary(name, code string) library {
	sum := sha256.Sum256([]byte(code))
	l := library{name: name, function: libraryPrefix(name) + hex.EncodeToString(sum[:6])}
	l.code = "#!lua name=" + l.function + "\n" + libraryHead + code +
		"redis.register_function{function_name='" + l.function +
		"', callback=answer, flags={'allow-oom'}}\n"
	return l
}

func libraryPrefix(name string) string { return "muster_" + name + "_" }

// functionAgain is the time for which a handle uses the script after it found no library.
const functionAgain = time.Minute

// libraryEvery is the least time between two checks of a server for the library of a Redis.
const libraryEvery = 5 * time.Second

// call calls a script: as a function, if it is one and this handle may trust it.
//
// Each user that may load functions can replace the code of any, and a function runs with the
// permissions of its caller. So a server, which may do the most, calls scripts only, whose hash is
// their name; and nodes call functions, but only servers load them (functions.load). A handle
// without a role is alone with its Redis: it does both.
func (q *Conn) call(ctx context.Context, c *redis.Client, s *Script, name string,
	args []any) *redis.Cmd {
	if !q.functions.calls(s) {
		return s.Call(ctx, c, name, args...)
	}
	keys := []string{keys.Zone(name, "zone", "")}
	ctx = hooks.Named(ctx, s.name)
	cmd := c.FCall(ctx, s.made().function, keys, args...)
	err := cmd.Err()
	switch {
	case !isUnknownFunction(err) && !isNoFunctions(err):
		return cmd
	case q.functions.again(ctx, c, s, err):
		return c.FCall(ctx, s.made().function, keys, args...)
	}
	return s.Call(ctx, c, name, args...)
}

// functions is the state of functions in Redis as a handle knows it, on the boot clock.
type functions struct {
	cfg    *Config
	from   atomic.Int64 // when it may call them again
	looked sync.Map     // address of a server to when its library was checked
}

// due reports whether to check the library of a server again, and notes the check: zones that share
// a server are tended one after the other.
func (f *functions) due(addr string) bool {
	now := proc.Boot()
	last, known := f.looked.Load(addr)
	if known && now < last.(time.Duration)+libraryEvery {
		return false
	}
	f.looked.Store(addr, now)
	return true
}

func (f *functions) off() bool {
	from := f.from.Load()
	return from != 0 && proc.Boot() < time.Duration(from)
}

func (f *functions) never()                { f.from.Store(math.MaxInt64) }
func (f *functions) later(d time.Duration) { f.from.Store(int64(proc.Boot() + d)) }

// calls reports whether to call a script as a function.
func (f *functions) calls(s *Script) bool {
	return s.made().function != "" && f.cfg.Role != keys.RoleServer && !f.off()
}

// again reports whether to call the function once more, after an err that shows that nothing was
// carried out.
func (f *functions) again(ctx context.Context, c *redis.Client, s *Script, err error) bool {
	switch {
	case isNoFunctions(err):
		f.never()
		return false
	case f.cfg.Role != "":
		f.later(functionAgain) // until a server of this version has loaded it
		return false
	}
	_, err = s.made().load(ctx, c, false)
	return err == nil
}

// load makes sure that a Redis has the function of step, so that nodes can call it. With mend it
// also replaces code that differs from what the name promises: somebody has changed it, and the
// error says so.
func (f *functions) load(ctx context.Context, c *redis.Client, mend bool) error {
	if f.off() {
		return nil
	}
	replaced, err := Scripts.Step.made().load(ctx, c, mend)
	switch {
	case isNoFunctions(err):
		f.never()
		return nil
	case err != nil:
		return f.cfg.say("load function", err)
	case replaced:
		return fmt.Errorf("redis %s: %w: the function %s was not the code of this version; it is loaded "+
			"anew. Whoever may do FUNCTION LOAD there can run commands with the permissions of every node: "+
			"give nodes the users that `muster acl` prints", f.cfg.Where(), ErrReplaced,
			Scripts.Step.made().function)
	}
	return nil
}

// ErrReplaced is wrapped by Tend's error when somebody had replaced code of muster in Redis.
var ErrReplaced = errors.New("somebody has replaced code of muster")

// load makes sure that a library is in a Redis. With mend it compares the code, and replaced
// reports that it differed. It removes old versions when they have become many; a server that still
// needs one loads it again.
func (l library) load(ctx context.Context, c *redis.Client, mend bool) (replaced bool,
	err error) {
	list, err := c.FunctionList(ctx, redis.FunctionListQuery{
		LibraryNamePattern: libraryPrefix(l.name) + "*", WithCode: mend}).Result()
	if err != nil {
		return false, err
	}
	for _, found := range list {
		if found.Name != l.function {
			continue
		}
		if !mend || found.Code == l.code {
			return false, nil
		}
		return true, c.FunctionLoadReplace(ctx, l.code).Err()
	}
	err = c.FunctionLoad(ctx, l.code).Err()
	if err != nil && !strings.Contains(err.Error(), "already exists") {
		return false, err
	}
	if len(list) >= libraries {
		for _, old := range list {
			c.FunctionDelete(ctx, old.Name) // a failure does not matter: it only takes room
		}
	}
	return false, nil
}

// isUnknownFunction reports that nothing was carried out because the library is missing.
func isUnknownFunction(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "ERR Function not found")
}

// isNoFunctions reports that nothing was carried out because this server, miniredis, has no
// functions.
func isNoFunctions(err error) bool {
	return err != nil && strings.HasPrefix(strings.ToLower(err.Error()), "err unknown command")
}

// TendLibrary makes sure that the nodes of a zone find the right function of step.
func (q *Conn) TendLibrary(ctx context.Context, zone string) error {
	c, addr, err := q.At(ctx, zone)
	if err != nil || q.cfg.Role != keys.RoleServer || !q.functions.due(addr) {
		return err
	}
	return q.functions.load(ctx, c, true)
}
