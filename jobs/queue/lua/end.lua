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

begin()
local t = zone.run and task(id)
if not t then return {'absent', 0, 0, 0, 0} end
if not t.cancel and t.done < t.total then
  w('HSET', kTask(id), 'cancel', note)
  event('cancel', id, '{"note":' .. cjson.encode(note) .. '}')
end

local ended, running, already, hosts = 0, 0, 0, 0
for host in string.gmatch(call('HGET', kTask(id), 'hosts:' .. chunk) or '', '[^\n]+') do
  local jobID = id .. ':' .. host
  local j = job(jobID)
  hosts = hosts + 1
  if j.state == 'ended' then
    already = already + 1
  elseif j.state == 'running' or j.state == 'lost' then
    running = running + 1
  else
    finish(jobID, j, {outcome = outcome, err = note})
    w('ZREM', kHeld(id), jobID)
    ended = ended + 1
  end
end
flush()
return {'ok', ended, running, already, hosts}
