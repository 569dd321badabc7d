-- end: cancels a task or some of its jobs, or ends the jobs that a newer task supersedes. A task
-- first gets one flag, which takes obey at once; then its jobs end, one chunk of hosts after
-- another, a part of a chunk in one call.
--
-- KEYS 1 zone
-- ARGV 1 task  2 cancelled | superseded  3 who and why, for people
--      4 number of the chunk of hosts, '' = the hosts of ARGV 5
--      5 hosts, separated by newlines (1..200): only their jobs; no flag
--      6 superseded: the newer task
--      7 hosts of them to leave out at the front  8 to look at, at most (1..50)
-- Returns {ok, ended now, running, had ended before, hosts looked at} |
--      {absent, 0, 0, 0, 0}
-- Keeps: this script does not end a running job: its worker sees the flag and stops it on
--      the host. A job of a task that is not committed ends too. Only jobs that never
--      started are superseded, on hosts that the newer task has as well.

local id, outcome, note, chunk, hosts = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local by = outcome == 'superseded' and ARGV[6]

m.begin()
local t = m.zone.run and m.task(id)
if not t then return {'absent', 0, 0, 0, 0} end
if chunk ~= '' then
  hosts = call('HGET', m.kTask .. id, 'hosts:' .. chunk) or ''
  local flag = by and 'by' or 'cancel'
  if t.done < t.total and (by and t.by ~= by or not by and not t.cancel) then
    m.w('HSET', m.kTask .. id, flag, by or note)
    m.event(by and 'supersede' or 'cancel', id, '{"note":' .. cjson.encode(note) .. '}')
  end
end

local ended, running, already = 0, 0, 0
local gone = {'ZREM', m.kHeld .. id}
-- If the script breaks off, a job that ended is still in held. With an instant as its score it does
-- not count as waiting for its wave, which otherwise would never be opened.
local aside = {'ZADD', m.kHeld .. id, 'XX'}

-- close ends a job that waits.
local function close(jobID, j, queued, held)
  local o = by and {outcome = 'superseded', err = note} or m.cancelled(j, note)
  m.finish(jobID, j, o)
  if queued then m.leave(jobID) end
  if held then
    aside[#aside + 1] = m.at
    aside[#aside + 1] = jobID
  end
  gone[#gone + 1] = jobID
  ended = ended + 1
end

-- stop leaves a note for the worker that has a job.
local function stop(jobID, j)
  running = running + 1
  if chunk == '' and not j.cancel then
    j.cancel = note
    m.keep(jobID, j)
    m.event('cancel', jobID, '{"note":' .. cjson.encode(note) .. '}')
  end
end

local names, ids, inQueue, inAgain, inHeld = m.places(id, hosts, m.num(ARGV[7]), m.num(ARGV[8]))
m.readJobs(ids)
for i, host in ipairs(names) do
  local jobID = ids[i]
  local j = m.job(jobID)
  local waits = inQueue[i] or inAgain[i] or inHeld[i]
  if j.state == 'ended' or (not j.state and not waits) then -- ended, maybe a day ago
    already = already + 1
  elseif by and (j.started or not m.has(by, host)) then
    running = running + (j.started and 1 or 0)
  elseif j.state == 'running' or j.state == 'lost' then
    stop(jobID, j)
  else
    close(jobID, j, inQueue[i], inHeld[i])
  end
end
m.reopen(t)
if #aside > 3 then m.w(unpack(aside)) end
if #gone > 2 then m.wLast(unpack(gone)) end
m.flush(true)
return {'ok', ended, running, already, #names}
