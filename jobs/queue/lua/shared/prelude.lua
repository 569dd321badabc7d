-- prelude: shared by the scripts. It stands in front of each of them, behind the names of the keys
-- (m.kQueue, m.kTask .. id …, made in keys.go) and either script.lua or library.lua. Everything
-- that functions share is a field of m; the function Lua in keys.go says why.
--
-- The order in every script is: read and check everything, plan the writes with w(), then flush().
-- Redis does not undo a script that fails half way. So the writes for a job are ordered such that
-- after each prefix the next script can find and repair the job.
--
-- Times are µs. As numbers they are exact (below 2^53); they leave Lua only through us(), because
-- Redis 7.0 would write 1.76e+15.

m.DAY = '86400000'   -- ms; ended jobs are kept for a day
m.MINUTE = 60000000  -- µs; a job that found its resource taken tries again after it
m.NONE = {}          -- a missing value; nobody writes into it

-- us returns a whole number as text. %d takes a long here, and costs a third of %.0f and of Redis'
-- own conversion of a number that is an argument of a call.
function m.us(n) return format('%d', n) end
function m.num(s) return s and tonumber(s) or 0 end

-- Fields that nearly every call reads become numbers by `+ 0`: tonumber reads a text twice, and
-- reading sixteen digits costs more than a call of Lua.

-- begin reads the clock and the zone. m.now is Redis' TIME, at least the highest seen, m.at the
-- same as text; m.raw is TIME as it was read.
function m.begin()
  local t = call('TIME')
  local v = call('HMGET', m.kZone, 'run', 'frozen', 'halted', 'high', 'token', 'turn', 'waits',
    'epoch', 'longest', 'paused', 'customers', 'owed', 'asks', 'form', 'quarantine')
  -- A newer muster keeps more here than this code knows.
  if v[14] and v[14] ~= m.LEAST and (tonumber(v[14]) or 0) > m.FORM then
    error('muster-form ' .. string.match(m.kZone, '{(.*)}') .. ' ' .. v[14] .. ' ' ..
      (call('HGET', m.kZone, 'form_by') or ''))
  end
  local raw, high = t[1] * 1000000 + t[2], (v[4] or 0) + 0
  -- If the clock goes back a little, the highest time seen counts; a clock that was far ahead and
  -- was corrected is believed.
  local now = (raw >= high or raw < high - m.MINUTE) and raw or high
  m.raw, m.now, m.at = raw, now, m.us(now)
  m.zone = {run = v[1], frozen = (v[2] or 0) + 0, halted = v[3], token = (v[5] or 0) + 0,
    turn = (v[6] or 0) + 0, waits = (v[7] or 0) + 0 > now - 5 * m.MINUTE and v[7], high = high,
    epoch = v[8], longest = (v[9] or 0) + 0, paused = v[10], customers = v[11],
    turned = false, waited = v[7], -- if turn changed, and waits as stored
    -- owed: history must be asked before anything starts, since when and why (recall.lua).
    owed = v[12], shut = v[12] or (v[2] or 0) + 0 > now,
    asks = v[13], -- there are orders to ask about jobs that ended unknown (ask.lua)
    quarantine = v[15]} -- there are hosts that take only checks (job.lua)
end

-- reset begins a call: nothing is planned or read.
--
-- The plan of writes. w() adds one; writes for many jobs at once are gathered into one call.
-- flush() carries them out in this order, in which each prefix is valid: a job with a record is no
-- longer in queue, where nobody reads records, and an unfinished job is in some list. So a job goes
-- from queue to its end by way of again, and from again back to queue without a record.
--
-- A nil in a table keeps a place for a later element: a table that grows by an element is copied,
-- which costs more than the element. NONE stands for a table that is rarely needed, and is created
-- with its first element.
function m.reset()
  m.toFree = {'HDEL', m.kLocks, nil}         -- 1 hosts that are released
  m.plan = {}                                -- 2 in the order of w()
  m.toZone = false                           -- 3 fields of the zone after this call
  m.toTake = {'HSET', m.kLocks, nil, nil}    -- 4 hosts that are taken, with their locks
  m.toTime = {'ZADD', m.kAgain, nil, nil}    -- 5 score, id
  m.toUnqueue = {'ZREM', m.kQueue, nil}      -- 6
  m.kept = 0                                 -- 7 records and counters: keep(), count()
  m.planAfter = m.NONE                       -- 8 in the order of wAfter()
                                             -- 9 tasks that have ended
  m.toDrop = {'ZREM', m.kAgain, nil}         -- 10
  m.planLast = m.NONE                        -- 11 in the order of wLast()

  -- The events of a call go into one entry of the stream: one line each, with event, object and
  -- detail (JSON).
  m.happened = {nil, nil}

  -- Tasks, in the form the scripts need, and the records of jobs, which are fields of their task;
  -- false for a missing one. Each is read once a call.
  m.tasks = {}
  m.lastTask = false -- the task read last; t.before is the one before it
  m.records = {}

  -- The lock of a host as it will be after the plan: "token id", or false; and its stored end.
  m.locks = {}
  m.untils = m.NONE

  m.sems = m.NONE -- semaphores as they will be after the plan (exclude.lua)
  m.aside = m.NONE -- whether hosts are in quarantine after the plan (job.lua)
  m.left = false   -- how many are, once it changed one
  m.woken = false -- this call made a waiting job due, and its own take does not see it
end

function m.w(...) m.plan[#m.plan + 1] = {...} end

function m.wAfter(...)
  if m.planAfter == m.NONE then m.planAfter = {} end
  m.planAfter[#m.planAfter + 1] = {...}
end

function m.wLast(...)
  if m.planLast == m.NONE then m.planLast = {} end
  m.planLast[#m.planLast + 1] = {...}
end

-- planned returns 0 as long as nothing will be written.
function m.planned()
  return #m.plan + #m.planAfter + #m.planLast + #m.toFree + #m.toTake + #m.toTime + #m.toUnqueue + #m.toDrop +
    m.kept - 10
end

function m.event(name, object, detail)
  m.happened[#m.happened + 1] = name .. ' ' .. object .. ' ' .. (detail or '')
end

-- ask returns the call that reads a task; readTask decodes its answer. guard is not false if the
-- jobs may need groups or limits (exclude.lua), by is the task that supersedes it.
function m.ask(id)
  return {'HMGET', m.kTask .. id, 'total', 'due', 'expires', 'timeout', 'paused', 'cancel', 'done',
    'started', 'inventory', 'guard', 'by', 'running', 'o:succeeded', nil} -- and one job
end

function m.readTask(id, v)
  local t = false
  if v[1] then
    local running = (v[12] or 0) + 0
    t = {id = id, before = m.lastTask, total = v[1] + 0, due = (v[2] or 0) + 0, dueText = v[2] or '0',
      expires = (v[3] or 0) + 0, timeout = (v[4] or 0) + 0, timeoutText = v[4], paused = v[5], cancel = v[6],
      done = (v[7] or 0) + 0, started = v[8], inventory = v[9] or '', guard = v[10], by = v[11],
      running = running, ran = running, succeeded = (v[13] or 0) + 0, key = m.kTask .. id,
      put = {nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}, ends = 0, won = 0}
    -- Its jobs need nothing but their hosts, and nothing stops them.
    t.plain = not (t.paused or t.cancel or t.guard or t.by or m.zone.customers) and
      t.expires > m.now
    m.lastTask = t
  end
  m.tasks[id] = t
  return t
end

function m.task(id)
  local t = m.tasks[id]
  if t == nil then t = m.readTask(id, call('HMGET', unpack(m.ask(id), 2))) end
  return t
end

-- readJobs reads the records of jobs and their tasks, in one call for each task. Nearly always they
-- all belong to one task: then it returns that task.
function m.readJobs(ids)
  if not ids[1] then return end
  local task, n = sub(ids[1], 1, 10), #ids
  for i = 2, n do
    if sub(ids[i], 1, 10) ~= task then return m.readMany(ids) end
  end
  local knew = m.tasks[task] ~= nil
  local ask = knew and {'HMGET', m.kTask .. task} or m.ask(task)
  local from = #ask
  for i = 1, n do ask[from + i] = sub(ids[i], 11) end
  local v, records = call(unpack(ask)), m.records
  if not knew then m.readTask(task, v) end
  for i = 1, n do records[ids[i]] = v[from - 2 + i] end
  return m.tasks[task]
end

function m.readMany(ids)
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

-- put plans a record. If the task is missing there is none.
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

-- tally writes the records of a task and its counters together: a job that has ended is counted
-- even if the script breaks off. The zone has counters for good, so no server has to watch the ends
-- to know how many there were.
function m.tally(t)
  local put = t.put
  if t.counted then
    local n = #put
    -- If one job ends and the next is taken, the number of running jobs stays.
    if t.running ~= t.ran then
      put[n + 1], put[n + 2] = 'running', m.us(t.running)
      n = n + 2
    end
    if t.ends > 0 then
      put[n + 1], put[n + 2] = 'done', m.us(t.done + t.ends)
      if t.won > 0 then
        put[n + 3], put[n + 4] = 'o:succeeded', m.us(t.succeeded + t.won)
        call('HINCRBY', m.kZone, 'ended:succeeded', m.us(t.won))
      end
      if t.counts then
        for o, by in pairs(t.counts) do
          n = #put
          put[n + 1], put[n + 2] = 'o:' .. o, m.us(m.num(call('HGET', t.key, 'o:' .. o)) + by)
          call('HINCRBY', m.kZone, 'ended:' .. o, m.us(by))
        end
      end
    end
  end
  if #put > 0 then call('HSET', t.key, unpack(put)) end
end

-- close records that a task has ended, if it has. Its last job leaves again after this, so a script
-- that finds the job there knows that the close is missing.
function m.close(id, t)
  if t.ends == 0 and not t.open or t.done + t.ends < t.total then return end
  call('PEXPIRE', t.key, m.DAY)
  call('ZREM', m.kOpen, id)
  if t.guard then call('SREM', m.kRolling, id) end
  call('HINCRBY', m.kZone, 'changes', '1')
  call('HINCRBY', m.kZone, 'ended:tasks', '1')
  call('HSET', t.key, 'ended', m.at)
  m.event('task', id, '{"ended":true}')
end

-- flush carries the plan out. At maxmemory Redis refuses the first write of a script if it may need
-- memory, but no write after one that does not: so flush begins with a write that frees memory, and
-- results are stored while submits are refused.
function m.flush(frees)
  if #m.toFree > 2 then
    call(unpack(m.toFree))
  elseif frees then
    call('ZREM', m.kQueue, '')
  end
  for i = 1, #m.plan do call(unpack(m.plan[i])) end
  if m.toZone then call(unpack(m.toZone)) end
  if #m.toTake > 2 then call(unpack(m.toTake)) end
  if #m.toTime > 2 then call(unpack(m.toTime)) end
  if #m.toUnqueue > 2 then call(unpack(m.toUnqueue)) end
  if m.kept > 0 then
    local t = m.lastTask
    while t do
      m.tally(t)
      t = t.before
    end
  end
  for i = 1, #m.planAfter do call(unpack(m.planAfter[i])) end
  local t = m.lastTask
  while t do
    m.close(t.id, t)
    t = t.before
  end
  if #m.toDrop > 2 then call(unpack(m.toDrop)) end
  for i = 1, #m.planLast do call(unpack(m.planLast[i])) end
  if #m.happened > 0 then
    call('XADD', m.kEvents, 'MAXLEN', '~', '1000000', '*', 'e', table.concat(m.happened, '\n'))
  end
end

function m.taskOf(id) return sub(id, 1, 10) end
function m.hostOf(id) return sub(id, 12) end

function m.lockDelay(timeout)
  return timeout <= 250000000 and 5000000 or math.ceil(timeout / 50)
end

-- readLocks reads the unknown locks of the hosts of jobs in one call. It returns the hosts.
function m.readLocks(ids)
  local hosts, ask, locks = {nil}, {nil}, m.locks
  for i = 1, #ids do
    local host = sub(ids[i], 12)
    hosts[i] = host
    if locks[host] == nil then ask[#ask + 1] = host end
  end
  if ask[1] then
    local v = call('HMGET', m.kLocks, unpack(ask))
    for i = 1, #ask do m.noteLock(ask[i], v[i]) end
  end
  return hosts
end

function m.noteLock(host, text)
  local value = false
  if text then
    local blank = string.find(text, ' ', 1, true)
    local until_ = sub(text, 1, blank - 1) + 0
    if m.untils == m.NONE then m.untils = {} end
    m.untils[host] = until_
    value = until_ > m.raw and sub(text, blank + 1)
  end
  m.locks[host] = value
  return value
end

-- locked returns the lock of a host, or false.
function m.locked(host)
  local lock = m.locks[host]
  if lock == nil then lock = m.noteLock(host, call('HGET', m.kLocks, host)) end
  return lock
end
