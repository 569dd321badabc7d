-- schedule: what an operator makes of a schedule. One who changes it at the same
-- time is told apart by what was read before.
--
-- KEYS 1 zone, that of the hub: its prefix is that of the keys. Nothing of the
--      prelude stands before this script: the hub has no epoch.
-- ARGV 1 name  2 its JSON as it was read, '' = there was none  3 its JSON from now
--      on, '' = it is removed  4 where its ticks begin, for one that has none yet
-- Returns {ok | stale}
-- Keeps: a schedule that is removed takes its ticks along; one that is there has
--      some, if Redis has not forgotten them. Every change moves the stamp.

local call = redis.call
local P = string.sub(KEYS[1], 1, -5)
local name, was, new, ticks = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local schedules, ticking = P .. 'schedules', P .. 'ticks'

if (call('HGET', schedules, name) or '') ~= was then return {'stale'} end
-- The stamp first: who sees it and nothing new has read in vain, and no more.
call('HINCRBY', P .. 'stamps', 'schedules', 1)
if new == '' then
  call('HDEL', schedules, name)
  call('HDEL', ticking, name)
  return {'ok'}
end
if ticks ~= '' then call('HSET', ticking, name, ticks) end
call('HSET', schedules, name, new)
return {'ok'}
