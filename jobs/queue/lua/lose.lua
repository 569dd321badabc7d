-- lose: a child is gone. Its jobs are due at once, as lost, for a worker that
-- finds out what they did; their hosts stay locked until the lock ends.
--
-- KEYS 1 zone
-- ARGV 1 node  2 slot  3 why ("killed by signal 9")
-- Returns {id …} of the jobs that were lost
-- Keeps: only jobs that this slot still holds, by token, are touched, so a
--      repeated or late call changes nothing. A job that took three workers
--      with it ends as failed.

local node, slot, why = ARGV[1], ARGV[2], ARGV[3]
local POISON = 3

begin()
if not zone.run then return {} end
local lost = {}
local before = call('HGET', kHold(node), slot)
if before then
  local line = {}
  for text in string.gmatch(before, '([^\n]*)\n') do line[#line + 1] = text end
  for id, token in string.gmatch(line[4] or '', '(%S+) (%S+)') do
    local j = job(id)
    local t = task(taskOf(id))
    if t and j.token == token and j.state == 'running' then
      lost[#lost + 1] = id
      event('lost', id, '{"node":' .. cjson.encode(j.node) .. ',"why":' .. cjson.encode(why) .. '}')
      if j.crashes + 1 >= POISON then
        w('HSET', kJob(id), 'crashes', us(j.crashes + 1))
        finish(id, j, {outcome = 'failed', class = 'operator', keep = true,
          err = 'took ' .. us(POISON) .. ' workers with it, the last: ' .. why})
      else
        w('HSET', kJob(id), 'state', 'lost', 'crashes', us(j.crashes + 1))
        w('ZADD', kAgain, us(now), id)
        count(t, 'running', -1)
      end
    end
  end
  w('HDEL', kHold(node), slot)
end
local who = node .. '/' .. slot
local registered = children()
if registered[who] then
  w('HDEL', kZone, 'n:' .. who)
  registered[who] = nil
end
thaw(registered, zone.epoch)
if #lost > 0 then w('PUBLISH', kWake, '') end
flush()
return lost
