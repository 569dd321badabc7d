-- tick: stores the progress of a schedule; only the leader calls it.
--
-- KEYS 1 zone of the hub: it gives the prefix of the keys. This script has no prelude in
--      front of it: the hub has no epoch.
-- ARGV 1 schedule  2 its ticks as they were read, '' = there were none
--      3 its ticks from now on  4 number of the caller's term
-- Returns {ok | deposed | stale | gone}
-- Keeps: a caller that is not the leader changes nothing (deposed), nor does one that read
--      other ticks than there are (stale), nor does anybody for a schedule that was
--      removed (gone).

local call = redis.call
local P = string.sub(KEYS[1], 1, -5)
local name, was, new, term = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local ticking = P .. 'ticks'

local leads = string.match(call('GET', P .. 'leader:schedules') or '', '^(%d+) ')
if leads ~= term then return {'deposed'} end
if call('HEXISTS', P .. 'schedules', name) == 0 then return {'gone'} end
if (call('HGET', ticking, name) or '') ~= was then return {'stale'} end
call('HSET', ticking, name, new)
return {'ok'}
