package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A library is a script as a function of Redis (FUNCTION LOAD, FCALL). EVALSHA runs
// the whole text of a script at each call and so makes all functions in it anew; those
// of a library are made once. docs/decisions/0003-step-is-a-function.md has the figures.
//
// Its name has the hash of its text, so that two versions of muster live beside each
// other, and a library that is there is the right one.
type library struct{ function, code string }

// libraries is how many of a name may stay in a Redis, those of older versions with it.
const libraries = 4

// libraryHead makes a local of all that scripts use of Lua: a function finds a global
// of its own by a detour.
const libraryHead = `local function globals()
  return string, math, table, cjson, tonumber, ipairs, pairs, unpack, rawget, string.sub, string.format
end
local string, math, table, cjson, tonumber, ipairs, pairs, unpack, rawget, sub, format
local m, call, ARGV = {}, nil, nil
`

// newLibrary makes a library of code that ends with lua/shared/library.lua. The one
// function in it may write at maxmemory, as its first write frees; what it then refuses
// by itself is said in step.lua.
func newLibrary(name, code string) library {
	sum := sha256.Sum256([]byte(code))
	l := library{function: libraryPrefix(name) + hex.EncodeToString(sum[:6])}
	l.code = "#!lua name=" + l.function + "\n" + libraryHead + code +
		"redis.register_function{function_name='" + l.function +
		"', callback=answer, flags={'allow-oom'}}\n"
	return l
}

func libraryPrefix(name string) string { return "muster_" + name + "_" }

// call calls a script: as a function, if it is one and Redis takes it.
func (q *Queue) call(ctx context.Context, c *redis.Client, s *script, name string,
	args []any) *redis.Cmd {
	if s.function == "" || q.noFunctions.Load() {
		return s.run(ctx, c, name, args...)
	}
	keys := []string{zoneKey(name, "zone", "")}
	cmd := c.FCall(ctx, s.function, keys, args...)
	switch err := cmd.Err(); {
	case !isUnknownFunction(err) && !isNoFunctions(err):
		return cmd
	case isUnknownFunction(err):
		if q.loadLibrary(ctx, c, s) {
			return c.FCall(ctx, s.function, keys, args...)
		}
	default:
		q.noFunctions.Store(true)
	}
	return s.run(ctx, c, name, args...)
}

// loadLibrary loads a script as a library, and tells whether it is there now. Old
// versions of it are removed when they have become many; who still needs one loads it
// again.
func (q *Queue) loadLibrary(ctx context.Context, c *redis.Client, s *script) bool {
	err := c.FunctionLoad(ctx, s.code).Err()
	if err != nil && !strings.Contains(err.Error(), "already exists") {
		if isNoFunctions(err) {
			q.noFunctions.Store(true)
		}
		return false
	}
	list, err := c.FunctionList(ctx, redis.FunctionListQuery{
		LibraryNamePattern: libraryPrefix(s.name) + "*"}).Result()
	if err == nil && len(list) > libraries {
		for _, l := range list {
			if l.Name != s.function {
				c.FunctionDelete(ctx, l.Name) // a failure does not matter: it only takes room
			}
		}
	}
	return true
}

// isUnknownFunction tells that nothing was carried out, as the library is not there.
func isUnknownFunction(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "ERR Function not found")
}

// isNoFunctions tells that nothing was carried out, as this server has no functions:
// miniredis.
func isNoFunctions(err error) bool {
	return err != nil && strings.HasPrefix(strings.ToLower(err.Error()), "err unknown command")
}
