-- checkpoint: asked before every further step of a runbook. It keeps where the
-- job is and renews the lock by the task's timeout.
--
-- KEYS 1 zone
-- ARGV 1 job  2 token  3 step that is about to start  4 saved (JSON or '')
-- Returns {go | stop | stale, now, why}; {absent, now, ''} if there is no key zone
-- Keeps: only the attempt with the job's latest token may go on, and only while
--      no other job holds the host.

local id, token = ARGV[1], ARGV[2]

begin()
if not zone.run then return {'absent', us(now), ''} end
local j = job(id)
local t = task(taskOf(id))
if not t or j.token ~= token or j.state ~= 'running' then return {'stale', us(now), ''} end
local lock, value = locked(hostOf(id)), token .. ' ' .. id
if lock and lock ~= value then return {'stale', us(now), ''} end
if t.cancel then return {'stop', us(now), t.cancel} end
if zone.halted then return {'stop', us(now), zone.halted} end
if zone.frozen > now then return {'stop', us(now), 'the zone is frozen'} end

w('SET', kLock(hostOf(id)), value, 'PX', us(math.ceil(t.timeout / 1000)))
w('ZADD', kAgain, us(now + t.timeout + lockDelay(t.timeout)), id)
w('HSET', kJob(id), 'step', ARGV[3])
if ARGV[4] ~= '' then w('HSET', kJob(id), 'saved', ARGV[4]) end
event('step', id, '{"step":' .. ARGV[3] .. '}')
flush()
return {'go', us(now), ''}
