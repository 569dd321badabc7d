-- checkpoint: called before every further step of a runbook. It stores the job's position and
-- renews the lock by the task's timeout.
--
-- KEYS 1 zone
-- ARGV 1 job  2 token  3 step that will start  4 saved (JSON or '')
--      5 the proof of the node, for the event ('' or missing: none)
-- Returns {go | stop | stale, now, why}; {absent, now, ''} if there is no key zone
-- Keeps: only the attempt with the job's latest token may continue, and only while no
--      other job holds the host.

local id, token = ARGV[1], ARGV[2]

m.begin()
if not m.zone.run then return {'absent', m.at, ''} end
local j = m.job(id)
local t = m.task(m.taskOf(id))
if not t or j.token ~= token or j.state ~= 'running' then return {'stale', m.at, ''} end
local lock, value = m.locked(m.hostOf(id)), token .. ' ' .. id
if lock and lock ~= value then return {'stale', m.at, ''} end
if t.cancel or j.cancel then return {'stop', m.at, t.cancel or j.cancel} end
if m.zone.halted then return {'stop', m.at, m.zone.halted} end
if m.zone.shut then return {'stop', m.at, 'the zone is frozen'} end

m.lock(id, token, m.raw + t.timeout)
m.w('ZADD', m.kAgain, m.us(m.now + t.timeout + m.lockDelay(t.timeout)), id)
-- A delayed copy of an earlier call must not set the job back.
if tonumber(ARGV[3]) >= j.step then
  j.step = tonumber(ARGV[3])
  if ARGV[4] ~= '' then j.saved = ARGV[4] end
  m.keep(id, j)
end
local proof = ARGV[5] or ''
m.event('step', id, '{"step":' .. ARGV[3] .. (proof ~= '' and ',"proof":"' .. proof .. '"' or '') .. '}')
m.flush(true)
return {'go', m.at, ''}
