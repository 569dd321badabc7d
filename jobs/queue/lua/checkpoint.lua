-- checkpoint: asked before every further step of a runbook. It keeps where the
-- job is and renews the lock by the task's timeout.
--
-- KEYS 1 zone
-- ARGV 1 job  2 token  3 step that is about to start  4 saved (JSON or '')
-- Returns {go | stop | stale, now, why}; {absent, now, ''} if there is no key zone
-- Keeps: only the attempt with the job's latest token may go on, and only while
--      no other job holds the host.

local id, token = ARGV[1], ARGV[2]

m.begin()
if not m.zone.run then return {'absent', m.us(m.now), ''} end
local j = m.job(id)
local t = m.task(m.taskOf(id))
if not t or j.token ~= token or j.state ~= 'running' then return {'stale', m.us(m.now), ''} end
local lock, value = m.locked(m.hostOf(id)), token .. ' ' .. id
if lock and lock ~= value then return {'stale', m.us(m.now), ''} end
if t.cancel then return {'stop', m.us(m.now), t.cancel} end
if m.zone.halted then return {'stop', m.us(m.now), m.zone.halted} end
if m.zone.frozen > m.now then return {'stop', m.us(m.now), 'the zone is frozen'} end

m.w('SET', m.kLock .. m.hostOf(id), value, 'PX', m.us(math.ceil(t.timeout / 1000)))
m.w('ZADD', m.kAgain, m.us(m.now + t.timeout + m.lockDelay(t.timeout)), id)
m.w('HSET', m.kJob .. id, 'step', ARGV[3])
if ARGV[4] ~= '' then m.w('HSET', m.kJob .. id, 'saved', ARGV[4]) end
m.event('step', id, '{"step":' .. ARGV[3] .. '}')
m.flush()
return {'go', m.us(m.now), ''}
