-- The short ways of step. Delete this file, and nothing changes but speed: the random walks hold
-- the scripts against the model with it and without it.
--
-- Both functions know what the general code would do in the usual case, and do that alone. They
-- return false, and have changed nothing, where anything is unusual. A rule that changes in job.lua
-- or again.lua changes here as well.

-- ended settles the usual result, as finish and unlock would: the job runs, has succeeded or failed
-- without words, it is known how, and nobody waits for its host. i is the place of the result in
-- ARGV, t the task of the job.
function m.ended(i, id, t)
  local token, outcome, exit = ARGV[i + 1], ARGV[i + 3], ARGV[i + 4]
  local r, begun = m.records[id], token + 0
  if not (t and t.plain and r and not m.zone.waits and not m.zone.quarantine and
      outcome ~= 'unknown' and
      string.find(r, 'running 0 0 ' .. token .. ' ', 1, true) == 1 and
      m.now < begun + t.timeout - 1000) then return false end
  local host, locks = sub(id, 12), m.locks
  if begun <= m.forgets and locks[host] ~= token .. ' ' .. id then return false end
  locks[host] = false
  local list = m.happened
  list[#list + 1] = 'end ' .. id .. ' {"outcome":"' .. outcome ..
    (exit == '' and '"}' or '","exit":' .. exit .. '}')
  m.count(t, outcome, 1)
  t.running = t.running - 1
  list = m.toFree
  list[#list + 1] = host
  list = t.put
  local n = #list
  list[n + 1] = ':' .. host
  list[n + 2] = 'ended 0 0 ' .. sub(r, 13) .. m.at .. ' ' .. outcome .. ' - ' ..
    (exit == '' and '-' or exit) .. '+' .. ARGV[i + 5] .. ' '
  list = m.toDrop
  list[#list + 1] = id
  return true
end

-- fresh grants a due job of queue, as grant would, if the job begins for the first time and nothing
-- is in its way.
function m.fresh(id, host)
  local of, locks = sub(id, 1, 10), m.locks
  local t = m.tasks[of]
  if t == nil then t = m.task(of) end
  host = host or sub(id, 12)
  if not t or not t.plain or not t.started or m.zone.quarantine or
      (locks[host] or m.locked(host)) then return false end
  local last = m.lastToken + 1
  if last < m.now then last = m.now end
  local token = m.us(last)
  m.lastToken, m.tokenText = last, token
  locks[host] = token
  local list = m.toTake
  local n = #list
  list[n + 1], list[n + 2] = host, m.us(last + t.timeout) .. ' ' .. token .. ' ' .. id
  list = m.toTime
  n = #list
  list[n + 1], list[n + 2] = m.again(t), id
  list = m.toUnqueue
  list[#list + 1] = id
  t.running, t.counted, m.kept = t.running + 1, true, m.kept + 1
  list = t.put
  n = #list
  list[n + 1] = ':' .. host
  list[n + 2] = 'running 0 0 ' .. token .. ' 1 0 0 0 0 ' .. t.dueText .. ' 0 ' .. m.at .. ' ' ..
    m.who .. '\n\n\n'
  list = m.happened
  list[#list + 1] = 'take ' .. id .. ' {"node":"' .. m.who .. '","attempt":1}'
  m.held[id] = token
  list = m.grantedTo
  n = #list
  list[n + 1], list[n + 2] = of, host
  list = m.grants
  list[#list + 1] = id .. '\t' .. token .. '\tfresh\t1\t0\t0\t0\t0\t' .. t.dueText .. '\t' ..
    t.timeoutText .. '\t0\t\t\t'
  return true
end
