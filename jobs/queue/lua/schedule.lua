-- schedule: makes an operator's changes of some schedules, all of them or none. It recognizes
-- changes of others at the same time by comparing with the texts that the caller read.
--
-- KEYS 1 zone of the hub: it gives the prefix of the keys. This script has no prelude in
--      front of it: the hub has no epoch.
-- ARGV 1 the stamp of schedules as it was read, '' = whatever it is; then four for
--      each schedule: its name, its JSON as it was read, '' = there was none, its
--      JSON from now on, '' = it is removed, where its ticks begin, if it has none
--      yet
-- Returns {ok | stale}
-- Keeps: if one of them, or the stamp, is not as it was read, nothing is changed. A
--      removed schedule loses its ticks; every other has some, if Redis has not
--      forgotten them. Every change moves the stamp.

local call = redis.call
local P = string.sub(KEYS[1], 1, -5)
local schedules, ticking, stamps = P .. 'schedules', P .. 'ticks', P .. 'stamps'

if ARGV[1] ~= '' and (call('HGET', stamps, 'schedules') or '0') ~= ARGV[1] then
  return {'stale'}
end
for i = 2, #ARGV, 4 do
  if (call('HGET', schedules, ARGV[i]) or '') ~= ARGV[i + 1] then return {'stale'} end
end
-- The stamp comes first: a reader that sees a new stamp and nothing new has only read in vain.
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
