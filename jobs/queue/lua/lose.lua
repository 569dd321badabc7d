-- lose: a child is gone. Its jobs are due at once, as lost, for a worker that verifies how they
-- ended; their hosts stay locked until the lock ends.
--
-- KEYS 1 zone
-- ARGV 1 node  2 slot  3 why ("killed by signal 9")
--      4 when the caller sent this, by its estimate of TIME, µs
-- Returns {id …} of the jobs that were lost; {stale} if a later call of this slot
--      was answered: the slot has another child now, or the caller repeats
-- Keeps: hold notes when the slot was lost, so that calls from before are stale. Only
--      jobs that this slot still holds, by token, are touched, so a repeated or late
--      call changes nothing. A job during which three workers died ends: failed if it
--      may run twice, else unknown.

local node, slot, why = ARGV[1], ARGV[2], ARGV[3]
local POISON = 3

m.beginZone()
if not m.zone.run then return {} end
local lost = {}
local before = call('HGET', m.kHold .. node, slot)
if before then
  local line = {}
  for text in string.gmatch(before, '([^\n]*)\n') do line[#line + 1] = text end
  local sent = m.num(string.match(line[1], ' (%d+)'))
  -- A stamp from the future comes from a clock that was wrong.
  if m.num(ARGV[4]) < sent and sent < m.raw + m.MINUTE then return {'stale'} end
  local ids, tokens = {}, {}
  for id, token in string.gmatch(line[4] or '', '(%S+) (%S+)') do
    ids[#ids + 1], tokens[id] = id, token
  end
  table.sort(ids) -- Lua kept them in any order
  for _, id in ipairs(ids) do
    local j, token = m.job(id), tokens[id]
    local t = m.task(m.taskOf(id))
    if t and j.token == token and j.state == 'running' then
      lost[#lost + 1] = id
      m.event('lost', id, '{"node":' .. cjson.encode(j.node) .. ',"why":' ..
        cjson.encode(why) .. '}')
      j.crashes = j.crashes + 1
      if j.crashes >= POISON then
        -- Only a job that may run twice was certainly begun by all three.
        local repeatable = call('HGET', m.kTask .. m.taskOf(id), 'repeatable') == '1'
        local outcome = repeatable and 'failed' or 'unknown'
        m.finish(id, j, {outcome = outcome, class = 'operator', keep = true,
          err = 'took ' .. m.us(POISON) .. ' workers with it, the last: ' .. why})
      else
        m.w('ZADD', m.kAgain, m.at, id)
        m.count(t, 'running', -1)
        j.state = 'lost'
        m.keep(id, j)
      end
    end
  end
end
-- A copy of a call of that child which the network delayed must not take jobs for an empty slot:
-- its stamp is older than this one.
m.w('HSET', m.kHold .. node, slot, '- ' .. ARGV[4] .. '\nlost 0\n\n\n')
local who = node .. '/' .. slot
local registered = m.children()
if registered[who] then
  m.w('HDEL', m.kZone, 'n:' .. who)
  registered[who] = nil
end
m.thaw(registered, m.zone.epoch)
if #lost > 0 then m.w('PUBLISH', m.kWake, '') end
m.flush(true)
return lost
