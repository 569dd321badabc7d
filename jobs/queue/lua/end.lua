-- end: cancels a task. The first call sets one flag, which takes obey at once;
-- then the jobs of one chunk of hosts after the other are ended.
--
-- KEYS 1 zone
-- ARGV 1 task  2 outcome (cancelled | superseded)  3 who and why, for people
--      4 number of the chunk of hosts
-- Returns {ok, ended now, running, had ended before, hosts in the chunk} |
--      {absent, 0, 0, 0, 0}
-- Keeps: a running job is not touched: its worker sees the flag at its next
--      checkpoint. A job of a task that is not committed ends too.

local id, outcome, note, chunk = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

m.begin()
local t = m.zone.run and m.task(id)
if not t then return {'absent', 0, 0, 0, 0} end
if not t.cancel and t.done < t.total then
  m.w('HSET', m.kTask .. id, 'cancel', note)
  m.event('cancel', id, '{"note":' .. cjson.encode(note) .. '}')
end

local ended, running, already, hosts = 0, 0, 0, 0
for host in string.gmatch(call('HGET', m.kTask .. id, 'hosts:' .. chunk) or '', '[^\n]+') do
  local jobID = id .. ':' .. host
  local j = m.job(jobID)
  hosts = hosts + 1
  local gone = not j.state and not call('ZSCORE', m.kQueue, jobID) and
    not call('ZSCORE', m.kAgain, jobID) and not call('ZSCORE', m.kHeld .. id, jobID)
  if j.state == 'ended' or gone then -- gone: ended more than a day ago
    already = already + 1
  elseif j.state == 'running' or j.state == 'lost' then
    running = running + 1
  else
    local o = m.cancelled(j, note)
    if o.outcome == 'cancelled' then o.outcome = outcome end
    m.finish(jobID, j, o)
    m.toUnqueue[#m.toUnqueue + 1] = jobID
    m.wAfter('ZREM', m.kHeld .. id, jobID)
    ended = ended + 1
  end
end
m.flush(true)
return {'ok', ended, running, already, hosts}
