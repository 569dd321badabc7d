-- prelude: what the scripts share. It stands in front of each of them, behind
-- the names of the keys (m.kQueue, m.kTask .. id …, made in keys.go) and either
-- script.lua or library.lua. Everything that functions share is a field of m;
-- luaKeys in keys.go says why.
--
-- The order in every script is: read and check everything, plan the writes with
-- w(), then flush(). Redis does not undo a script that fails half way, so the
-- writes of a job are ordered such that each prefix leaves it to be found and
-- healed by the next one who meets it.
--
-- Times are µs. As numbers they are exact (below 2^53); they leave Lua only
-- through us(), because Redis 7.0 would write 1.76e+15.

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

-- reset begins a call: nothing is planned, nothing was read.
--
-- The plan of writes. w() notes one; what is done to many jobs at once is
-- gathered, so that it is one call. flush() carries them out in this order, in
-- which each prefix is valid: what has a record is not in queue any more, where
-- nobody reads records, and what has not ended is somewhere. So a job goes from
-- queue to its end by way of again, and from again back to queue without a record.
function m.reset()
  m.toFree = {'HDEL', m.kLocks}    -- 1 hosts that are given back
  m.plan = {}                      -- 2 in the order of w()
  m.toTake = {'HSET', m.kLocks}    -- 3 hosts that are taken, with their locks
  m.toTime = {'ZADD', m.kAgain}    -- 4 score, id
  m.toUnqueue = {'ZREM', m.kQueue} -- 5
  m.kept = 0                       -- 6 what is kept of jobs, and counters: keep(), count()
  m.planAfter = {}                 -- 7 in the order of wAfter()
                                   -- 8 tasks that have ended
  m.toDrop = {'ZREM', m.kAgain}    -- 9
  m.planLast = {}                  -- 10 in the order of wLast()

  -- What happened goes into one entry of the stream a call: a line each, of event,
  -- object and detail (JSON).
  m.happened = {}

  -- Tasks as the scripts need them, and the records of jobs, which are fields of
  -- their task; false for what is not there. Each is read once a call.
  m.tasks = {}
  m.records = {}

  -- What holds a host, as it will be after the plan: "token id", or false; and until
  -- when as it is kept.
  m.locks = {}
  m.untils = {}

  m.sems = {}     -- semaphores as they will be after the plan (exclude.lua)
  m.woken = false -- somebody became due by this call, and is not seen by its own take
end

function m.w(...) m.plan[#m.plan + 1] = {...} end
function m.wAfter(...) m.planAfter[#m.planAfter + 1] = {...} end
function m.wLast(...) m.planLast[#m.planLast + 1] = {...} end

-- planned is 0 as long as nothing is to be written.
function m.planned()
  return #m.plan + #m.planAfter + #m.planLast + #m.toFree + #m.toTake + #m.toTime + #m.toUnqueue + #m.toDrop +
    m.kept - 10
end

function m.event(name, object, detail)
  m.happened[#m.happened + 1] = name .. ' ' .. object .. ' ' .. (detail or '')
end

-- ask begins a call that reads a task; readTask takes what it answers. guard is
-- not false if the jobs may need groups or limits (exclude.lua), by is the task
-- that supersedes it.
function m.ask(id)
  return {'HMGET', m.kTask .. id, 'total', 'due', 'expires', 'timeout', 'paused', 'cancel', 'done',
    'started', 'inventory', 'guard', 'by', 'running', 'o:succeeded'}
end

function m.readTask(id, v)
  local t = false
  if v[1] then
    t = {total = tonumber(v[1]), due = m.num(v[2]), dueText = v[2] or '0', expires = m.num(v[3]),
      timeout = m.num(v[4]), timeoutText = v[4], paused = v[5], cancel = v[6],
      done = m.num(v[7]), started = v[8], inventory = v[9] or '', guard = v[10], by = v[11], running = m.num(v[12]),
      succeeded = m.num(v[13]), key = m.kTask .. id, put = {}, ends = 0, won = 0}
    -- Its jobs need nothing but their hosts, and nobody stands in their way.
    t.plain = not (t.paused or t.cancel or t.guard or t.by or m.zone.customers) and
      t.expires > m.now
  end
  m.tasks[id] = t
  return t
end

function m.task(id)
  local t = m.tasks[id]
  if t == nil then t = m.readTask(id, call('HMGET', unpack(m.ask(id), 2))) end
  return t
end

-- readJobs reads the records of jobs and their tasks, one call a task.
function m.readJobs(ids)
  local asks, order = {}, {}
  for i = 1, #ids do
    local task = sub(ids[i], 1, 10)
    local ask = asks[task]
    if not ask then
      ask = m.tasks[task] == nil and m.ask(task) or {'HMGET', m.kTask .. task}
      ask.ids, ask.from = {}, #ask - 2
      asks[task], order[#order + 1] = ask, task
    end
    ask[#ask + 1] = sub(ids[i], 11)
    ask.ids[#ask.ids + 1] = ids[i]
  end
  for _, task in ipairs(order) do
    local ask = asks[task]
    local v = call(unpack(ask))
    if ask.from > 0 then m.readTask(task, v) end
    for i, id in ipairs(ask.ids) do m.records[id] = v[ask.from + i] end
  end
end

-- put plans a record. Without a task there is none.
function m.put(id, record)
  local t = m.task(m.taskOf(id))
  if not t then return end
  local n = #t.put
  t.put[n + 1], t.put[n + 2] = sub(id, 11), record
  m.kept = m.kept + 1
end

-- count changes the number of jobs that run, or that ended with an outcome.
function m.count(t, what, by)
  if what == 'running' then
    t.running = t.running + by
  else
    t.ends = t.ends + by
    if what == 'succeeded' then
      t.won = t.won + by
    else
      t.counts = t.counts or {}
      t.counts[what] = (t.counts[what] or 0) + by
    end
  end
  t.counted = true
  m.kept = m.kept + 1
end

-- tally writes the records of a task and its counters, at once: a job that has
-- ended is counted, whoever breaks off.
function m.tally(t)
  local put = t.put
  if t.counted then
    local n = #put
    put[n + 1], put[n + 2] = 'running', m.us(t.running)
    if t.ends > 0 then
      put[n + 3], put[n + 4] = 'done', m.us(t.done + t.ends)
      if t.won > 0 then put[n + 5], put[n + 6] = 'o:succeeded', m.us(t.succeeded + t.won) end
      if t.counts then
        for o, by in pairs(t.counts) do
          n = #put
          put[n + 1], put[n + 2] = 'o:' .. o, m.us(m.num(call('HGET', t.key, 'o:' .. o)) + by)
        end
      end
    end
  end
  if #put > 0 then call('HSET', t.key, unpack(put)) end
end

-- close notes that a task has ended, if it has. Its last job leaves again behind
-- this, so that whoever meets it there sees what was not done.
function m.close(id, t)
  if t.ends == 0 and not t.open or t.done + t.ends < t.total then return end
  call('PEXPIRE', t.key, m.DAY)
  call('ZREM', m.kOpen, id)
  if t.guard then call('SREM', m.kRolling, id) end
  call('HINCRBY', m.kZone, 'changes', '1')
  call('HSET', t.key, 'ended', m.at)
  m.event('task', id, '{"ended":true}')
end

-- flush carries the plan out. At maxmemory Redis refuses the first write of a
-- script if it may need memory, but none after one that does not: so it begins
-- with one that frees, and results land while submits are refused.
function m.flush(frees)
  if #m.toFree > 2 then
    call(unpack(m.toFree))
  elseif frees then
    call('ZREM', m.kQueue, '')
  end
  for i = 1, #m.plan do call(unpack(m.plan[i])) end
  if #m.toTake > 2 then call(unpack(m.toTake)) end
  if #m.toTime > 2 then call(unpack(m.toTime)) end
  if #m.toUnqueue > 2 then call(unpack(m.toUnqueue)) end
  if m.kept > 0 then
    for _, t in pairs(m.tasks) do
      if t then m.tally(t) end
    end
  end
  for i = 1, #m.planAfter do call(unpack(m.planAfter[i])) end
  for id, t in pairs(m.tasks) do
    if t then m.close(id, t) end
  end
  if #m.toDrop > 2 then call(unpack(m.toDrop)) end
  for i = 1, #m.planLast do call(unpack(m.planLast[i])) end
  if #m.happened > 0 then
    call('XADD', m.kEvents, 'MAXLEN', '~', '1000000', '*', 'e', table.concat(m.happened, '\n'))
  end
end

function m.taskOf(id) return sub(id, 1, 10) end
function m.hostOf(id) return sub(id, 12) end

function m.lockDelay(timeout) return math.max(5000000, math.ceil(timeout / 50)) end

-- readLocks reads what holds the hosts of jobs, as far as it is not known, in one call.
function m.readLocks(ids)
  local hosts = {}
  for i = 1, #ids do
    local host = sub(ids[i], 12)
    if m.locks[host] == nil then hosts[#hosts + 1] = host end
  end
  if #hosts == 0 then return end
  local v = call('HMGET', m.kLocks, unpack(hosts))
  for i = 1, #hosts do m.noteLock(hosts[i], v[i]) end
end

function m.noteLock(host, text)
  local value = false
  if text then
    local until_, lock = string.match(text, '^(%d+) (.*)$')
    m.untils[host] = tonumber(until_)
    value = m.untils[host] > m.raw and lock
  end
  m.locks[host] = value
end
