-- tick: how far a schedule has come, written by the leader and by nobody else.
--
-- KEYS 1 zone, that of the hub: its prefix is that of the keys. Nothing of the
--      prelude stands before this script: the hub has no epoch.
-- ARGV 1 schedule  2 its ticks as they were read, '' = there were none
--      3 its ticks from now on  4 number of the caller's term
-- Returns {ok | deposed | stale | gone}
-- Keeps: who is not the leader changes nothing (deposed), nor does who read
--      something else than there is (stale), nor does anybody for a schedule that
--      was removed (gone).

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
