-- prelude: what the scripts share. It stands in front of each of them, behind
-- the names of the keys (m.kQueue, m.kJob .. id …, made in keys.go). Everything
-- that functions share is a field of m; luaKeys in keys.go says why.
--
-- The order in every script is: read and check everything, plan the writes with
-- w(), then flush(). Redis does not undo a script that fails half way, so the
-- writes of a job are ordered such that each prefix leaves it to be found and
-- healed by the next one who meets it.
--
-- Times are µs. As numbers they are exact (below 2^53); they leave Lua only
-- through us(), because Redis 7.0 would write 1.76e+15.

local call = redis.call

-- What a call seldom needs is made when it is first asked for: m.lazy is a
-- function around it, and making a function costs time at every call.
setmetatable(m, {__index = function(_, name)
  local lazy = rawget(m, 'lazy')
  if not lazy then return nil end
  m.lazy = nil
  lazy()
  return rawget(m, name)
end})

m.DAY = '86400000'   -- ms; what ended is kept for a day
m.MINUTE = 60000000  -- µs; who met a taken resource comes again after it

-- us is a whole number as text. %d takes a long here, and costs a third of %.0f
-- and of what Redis itself does with a number that is an argument of a call.
function m.us(n) return string.format('%d', n) end
function m.num(s) return s and tonumber(s) or 0 end

-- begin reads the clock and the zone. m.now is Redis' TIME, clamped to the
-- highest seen, m.at the same as text; m.raw is as it was read.
function m.begin()
  local t = call('TIME')
  local v = call('HMGET', m.kZone, 'run', 'frozen', 'halted', 'high', 'token', 'turn', 'waits',
    'epoch', 'longest', 'paused', 'customers')
  m.raw = tonumber(t[1]) * 1000000 + tonumber(t[2])
  local high = m.num(v[4])
  -- A clock that goes back a little is held; one that was far ahead and was put
  -- right is believed.
  m.now = m.raw < high - m.MINUTE and m.raw or math.max(m.raw, high)
  m.at = m.us(m.now)
  m.zone = {run = v[1], frozen = m.num(v[2]), halted = v[3], token = m.num(v[5]),
    turn = m.num(v[6]), waits = m.num(v[7]) > m.now - 5 * m.MINUTE and v[7], high = high,
    epoch = v[8], longest = m.num(v[9]), paused = v[10], customers = v[11]}
end

-- The plan of writes. w() notes one; what is done to many jobs at once is
-- gathered, so that it is one call. flush() carries them out in this order:
m.toFree = {'DEL'}                 -- 1 locks that are given back
m.plan = {}                        -- 2 in the order of w()
m.toTake = {}                      -- 3 locks that are taken: key, value, ms
m.toTime = {'ZADD', m.kAgain}      -- 4 score, id
m.toUnqueue = {'ZREM', m.kQueue}   -- 5
m.planAfter = {}                   -- 6 in the order of wAfter()
m.toDrop = {'ZREM', m.kAgain}      -- 7

function m.w(...) m.plan[#m.plan + 1] = {...} end
function m.wAfter(...) m.planAfter[#m.planAfter + 1] = {...} end

-- planned is 0 as long as nothing is to be written.
function m.planned()
  return #m.plan + #m.planAfter + #m.toFree + #m.toTake + #m.toTime + #m.toUnqueue + #m.toDrop - 7
end

-- What happened goes into one entry of the stream a call: a line each, of event,
-- object and detail (JSON).
m.happened = {}

function m.event(name, object, detail)
  m.happened[#m.happened + 1] = name .. ' ' .. object .. ' ' .. (detail or '')
end

-- A task as the scripts need it; false if it is not there. Read once a call.
-- guard is not false if its jobs may need groups or limits (exclude.lua), by is
-- the task that supersedes it.
m.tasks = {}

function m.task(id)
  local t = m.tasks[id]
  if t ~= nil then return t end
  local v = call('HMGET', m.kTask .. id, 'total', 'due', 'expires', 'timeout', 'paused', 'cancel',
    'done', 'started', 'inventory', 'guard', 'by')
  if not v[1] then
    m.tasks[id] = false
    return false
  end
  t = {total = m.num(v[1]), due = m.num(v[2]), expires = m.num(v[3]), timeout = m.num(v[4]),
    paused = v[5], cancel = v[6], done = m.num(v[7]), started = v[8], inventory = v[9] or '',
    guard = v[10], by = v[11], add = {}}
  m.tasks[id] = t
  return t
end

-- count changes a counter of a task.
function m.count(t, field, by)
  t.add[field] = (t.add[field] or 0) + by
end

function m.tally()
  for id, t in pairs(m.tasks) do
    if t then
      for field, by in pairs(t.add) do
        if by ~= 0 then call('HINCRBY', m.kTask .. id, field, m.us(by)) end
      end
      local done = t.done + (t.add.done or 0)
      if done > t.done and done >= t.total then
        call('HSET', m.kTask .. id, 'ended', m.at)
        call('PEXPIRE', m.kTask .. id, m.DAY)
        call('ZREM', m.kOpen, id)
        call('HINCRBY', m.kZone, 'changes', '1')
        m.event('task', id, '{"ended":true}')
      end
      t.done, t.add = done, {}
    end
  end
end

-- flush carries the plan out. At maxmemory Redis refuses the first write of a
-- script if it may need memory, but none after one that does not: so it begins
-- with one that frees, and results land while submits are refused.
function m.flush(frees)
  if #m.toFree > 1 then
    call(unpack(m.toFree))
  elseif frees then
    call('ZREM', m.kQueue, '')
  end
  for i = 1, #m.plan do call(unpack(m.plan[i])) end
  for i = 1, #m.toTake, 3 do call('SET', m.toTake[i], m.toTake[i + 1], 'PX', m.toTake[i + 2]) end
  if #m.toTime > 2 then call(unpack(m.toTime)) end
  if #m.toUnqueue > 2 then call(unpack(m.toUnqueue)) end
  for i = 1, #m.planAfter do call(unpack(m.planAfter[i])) end
  if #m.toDrop > 2 then call(unpack(m.toDrop)) end
  m.tally()
  if #m.happened > 0 then
    call('XADD', m.kEvents, 'MAXLEN', '~', '1000000', '*', 'e', table.concat(m.happened, '\n'))
  end
end

-- A job as far as it is kept: state is false before its first take.
function m.job(id)
  local v = call('HMGET', m.kJob .. id, 'state', 'token', 'attempt', 'tries', 'probes', 'crashes',
    'step', 'saved', 'due', 'node', 'outcome', 'expires', 'started', 'lost', 'cancel', 'live')
  return {state = v[1], token = v[2], attempt = m.num(v[3]), tries = m.num(v[4]),
    probes = m.num(v[5]), crashes = m.num(v[6]), step = m.num(v[7]), saved = v[8] or '',
    due = m.num(v[9]), node = v[10] or '', outcome = v[11], expires = m.num(v[12]), started = v[13],
    lost = v[14], cancel = v[15], live = v[16]}
end

-- What the end of a job needs of it.
function m.jobToEnd(id)
  local v = call('HMGET', m.kJob .. id, 'state', 'token', 'outcome', 'lost', 'live')
  return {state = v[1], token = v[2], outcome = v[3], lost = v[4], live = v[5]}
end

-- A job that has never started: nothing of it is kept.
function m.freshJob()
  return {state = false, token = false, attempt = 0, tries = 0, probes = 0, crashes = 0, step = 0,
    saved = '', due = 0, node = '', expires = 0}
end

function m.taskOf(id) return string.sub(id, 1, 10) end
function m.hostOf(id) return string.sub(id, 12) end

function m.lockDelay(timeout) return math.max(5000000, math.ceil(timeout / 50)) end

-- What holds a host, as it will be after the plan: "token id", or false.
m.locks = {}

function m.locked(host)
  if m.locks[host] == nil then m.locks[host] = call('GET', m.kLock .. host) end
  return m.locks[host]
end

m.woken = false -- somebody became due by this call, and is not seen by its own take

-- unlock gives the host of a job back, if the job holds it. The token is the
-- instant of the take, so until its timeout has passed the lock is surely the
-- job's, and need not be read; but for a while after a restart of Redis, which
-- may have forgotten another take.
function m.unlock(id, j, t)
  local host = m.hostOf(id)
  local sure = t and j.state == 'running' and not j.lost and
    m.now < m.num(j.token) + t.timeout - 1000 and
    m.num(j.token) > m.num(m.zone.epoch) + m.zone.longest
  if not sure and (not j.token or m.locked(host) ~= j.token .. ' ' .. id) then return end
  m.toFree[#m.toFree + 1] = m.kLock .. host
  m.locks[host] = false
  if m.zone.waits then m.wakeFor(host) end
end

-- finish ends a job. o: outcome, class, exit, err, note, keep (the host stays locked
-- until its lock ends by itself).
function m.finish(id, j, o)
  local t = m.task(m.taskOf(id))
  local set = {'HSET', m.kJob .. id, 'state', 'ended', 'outcome', o.outcome, 'ended', m.at}
  local detail = '{"outcome":"' .. o.outcome .. '"'
  if o.class and o.class ~= '' then
    set[#set + 1] = 'class'
    set[#set + 1] = o.class
  end
  if o.exit and o.exit ~= '' then
    set[#set + 1] = 'exit'
    set[#set + 1] = o.exit
    detail = detail .. ',"exit":' .. o.exit
  end
  if o.err and o.err ~= '' then
    set[#set + 1] = 'error'
    set[#set + 1] = o.err
    detail = detail .. ',"error":' .. cjson.encode(o.err)
  end
  if o.note and o.note ~= '' then
    set[#set + 1] = 'note'
    set[#set + 1] = o.note
    detail = detail .. ',"how":' .. cjson.encode(o.note)
  end
  if t then
    m.count(t, 'o:' .. o.outcome, 1)
    m.count(t, 'done', 1)
    if j.state == 'running' then m.count(t, 'running', -1) end
  end
  m.event('end', id, detail .. '}')
  -- Before the job is ended: who broke off in between would leave holders to a job
  -- that nobody looks at again.
  if t and t.guard and j.token then m.settle(id, t, o) end
  m.plan[#m.plan + 1] = set
  m.w('PEXPIRE', m.kJob .. id, m.DAY)
  if not o.keep then m.unlock(id, j, t) end
  m.toDrop[#m.toDrop + 1] = id
end
