-- schedule: what an operator makes of some schedules, all of them or none. One who
-- changes them at the same time is told apart by what was read before.
--
-- KEYS 1 zone, that of the hub: its prefix is that of the keys. Nothing of the
--      prelude stands before this script: the hub has no epoch.
-- ARGV 1 the stamp of schedules as it was read, '' = whatever it is; then four of
--      each schedule: its name, its JSON as it was read, '' = there was none, its
--      JSON from now on, '' = it is removed, where its ticks begin, for one that
--      has none yet
-- Returns {ok | stale}
-- Keeps: if one of them, or the stamp, is not what was read, nothing is changed. A
--      schedule that is removed takes its ticks along; one that is there has some,
--      if Redis has not forgotten them. Every change moves the stamp.

local call = redis.call
local P = string.sub(KEYS[1], 1, -5)
local schedules, ticking, stamps = P .. 'schedules', P .. 'ticks', P .. 'stamps'

if ARGV[1] ~= '' and (call('HGET', stamps, 'schedules') or '0') ~= ARGV[1] then
  return {'stale'}
end
for i = 2, #ARGV, 4 do
  if (call('HGET', schedules, ARGV[i]) or '') ~= ARGV[i + 1] then return {'stale'} end
end
-- The stamp first: who sees it and nothing new has read in vain, and no more.
call('HINCRBY', stamps, 'schedules', 1)
for i = 2, #ARGV, 4 do
  local name, new, ticks = ARGV[i], ARGV[i + 2], ARGV[i + 3]
  if new == '' then
    call('HDEL', schedules, name)
    call('HDEL', ticking, name)
  else
    if ticks ~= '' then call('HSET', ticking, name, ticks) end
    call('HSET', schedules, name, new)
  end
end
return {'ok'}
