-- appoint: gives waiting jobs of a task new appointments after a change of their windows: jobs that
-- were deferred, and jobs that never started and have a time of their own.
--
-- KEYS 1 zone
-- ARGV 1 task  2.. host, when it was to run, and when from now on, µs, in turns (1..200)
-- Returns {ok, jobs moved} | {absent, 0}
-- Keeps: a job with another appointment, or in another state, than the caller names is left alone:
--      the worker that takes it checks again whether it may begin.

local id = ARGV[1]

m.begin()
local t = m.zone.run and m.task(id)
if not t then return {'absent', 0} end

local moved = 0
for i = 2, #ARGV, 3 do
  local jobID, was, at = id .. ':' .. ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local j = m.job(jobID)
  local key = m.kAgain
  local score = call('ZSCORE', key, jobID)
  if not score then
    key = m.kHeld .. id
    score = call('ZSCORE', key, jobID)
  end
  local waits = j.state == 'deferred' or j.state == 'queued' and not j.started
  if waits and score and tonumber(score) == tonumber(was) then
    m.w('ZADD', key, 'XX', at, jobID)
    j.due = tonumber(at)
    j.later = math.max(j.due - t.due, 0)
    m.keep(jobID, j)
    m.event('appoint', jobID, '{"at":' .. at .. '}')
    moved = moved + 1
  end
end
if moved > 0 then m.w('PUBLISH', m.kWake, '') end
m.flush()
return {'ok', moved}
