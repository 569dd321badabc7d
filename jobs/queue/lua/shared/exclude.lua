-- exclude: the resources that jobs need beside their host, and the jobs that wait for them. It
-- stands behind the prelude inside m.lazy: only tasks with a guard, cancelled jobs and zones with
-- waiting jobs need it.
--
-- A resource is host/<host>, group/<group> or a limit, "key/value". Each holder of a group or limit
-- is a field of sem:<name>. Nothing expires there: a holder leaves when its job releases the
-- resource, and a frozen group stays frozen until a person clears it. Waiters are hints: they stand
-- in `again` a minute ahead, and the job that frees a resource brings one of them forward, tasks in
-- turn.
--
-- A task that may need a group or a limit has a field `guard`; takes of all other tasks cost
-- nothing extra. A task that proves its groups has a field unproven:<group> with the host that did
-- not succeed, and takes end its other jobs of that group as `skipped`. A new limit gives a guard
-- to the open tasks of earlier inventories, and its name is added to their `traits`. Names are
-- never removed there, so that a job releases everything that it got.
--
-- A holder leaves at the end of its job, by a rescore that releases the host, or by a person. A
-- disruptive job that has begun keeps its group until it ends, also between two attempts. A job
-- that ends `unknown`, or while a part of it may still act on its host, leaves `frozen` in its
-- place, which only control removes. Two holders of a group, because Redis forgot one of them,
-- freeze it too: when the forgotten job is reported, or by fsck.
--
-- A job gets everything it needs or nothing. A fresh job that finds waiters wakes one of them and
-- joins them, so a lost hint costs a minute.

m.FROZEN = 'frozen' -- a field among the holders; job ids have a colon

-- lockLeft returns how long the stored lock of a host still lasts.
function m.lockLeft(host)
  return m.locked(host) and math.max((m.untils[host] or 0) - m.raw, 0) or 0
end

-- traits returns "customer group limit …" of a job's host in the inventory of its task, with - for
-- none.
function m.traits(id, t)
  return call('HGET', m.kTraits .. t.inventory, m.hostOf(id)) or '- -'
end

-- needs lists the resources that a job counts against, its group first. guard is "p" for a
-- disruptive task that proves its groups, "d" for another disruptive one, "-" for the rest; then
-- the limits that its runbook names follow.
function m.needs(id, t)
  local list, seen = {}, {}
  local function add(name)
    if not seen[name] then
      seen[name] = true
      list[#list + 1] = name
    end
  end
  local group, limits = string.match(m.traits(id, t), '^%S+ (%S+)(.*)$')
  if group ~= '-' and string.sub(t.guard, 1, 1) ~= '-' then add('group/' .. group) end
  for name in string.gmatch(limits .. string.sub(t.guard, 2), '%S+') do add(name) end
  return list
end

-- sem returns a semaphore as it will be after the plan: its holders, and the places that this call
-- keeps free for the jobs that it wakes.
function m.sem(name)
  local s = m.sems[name]
  if s then return s end
  s = {max = 1, holders = call('HLEN', m.kSem .. name), kept = 0,
    waits = call('EXISTS', m.kWait .. name) == 1}
  if string.sub(name, 1, 5) == 'rule:' then
    local task = string.sub(name, 6)
    local r = m.task(task) and m.rule(task, m.task(task))
    s.max = r and m.chances(r) or 0
  elseif string.sub(name, 1, 6) ~= 'group/' then
    -- A limit that is no longer defined binds nobody.
    s.max = tonumber(call('HGET', m.kLimits, name) or '') or math.huge
  end
  if m.sems == m.NONE then m.sems = {} end
  m.sems[name] = s
  return s
end

function m.room(s) return s.holders + s.kept < s.max end

-- lacks returns the first resource of the list that a job cannot have now, or nil if it can have
-- all. A job that comes fresh from the queue does not pass waiting jobs.
function m.lacks(id, list, fresh)
  for _, name in ipairs(list) do
    local s = m.sem(name)
    local free = m.room(s)
    if free and fresh and s.waits and m.wakeNext(name) then free = false end
    -- A take that broke off may have left the resource to this job, even before its first attempt.
    if not free and not m.holds(id, name) then return name end
  end
end

function m.holds(id, name) return call('HEXISTS', m.kSem .. name, id) == 1 end

-- enter adds id, or the mark of a frozen group, to the holders.
function m.enter(id, name, value)
  local s = m.sem(name)
  if not m.holds(id, name) then s.holders = s.holders + 1 end
  m.w('HSET', m.kSem .. name, id, value)
  m.w('SADD', m.kSems, name)
end

function m.acquire(id, list, token)
  for _, name in ipairs(list) do m.enter(id, name, token) end
end

-- drop removes a job from the holders of a resource. It returns true if the job was one.
function m.drop(id, name)
  if not m.holds(id, name) then return false end
  local s = m.sem(name)
  m.w('HDEL', m.kSem .. name, id)
  s.holders = s.holders - 1
  if s.holders == 0 then m.w('SREM', m.kSems, name) end
  return true
end

-- release gives up everything that a job holds, and wakes one waiter for each resource. A job that
-- has begun keeps its group, because its host is half disturbed. It also keeps its place in the
-- rule, because it may fail until it ends, unless it will ask again before it continues.
function m.release(id, t, begun, asks)
  for _, name in ipairs(m.needs(id, t)) do
    local kept = begun and string.sub(name, 1, 6) == 'group/' or
      not asks and string.sub(name, 1, 5) == 'rule:'
    if not kept and m.drop(id, name) then m.wakeNext(name) end
  end
end

-- A task that proves its groups begins the next member of a group only after the one before has
-- succeeded. unproven returns the member that has not, and how it ended, or false; proveNone notes
-- it.
m.FAILS_PROOF = {failed = true, unreachable = true, timeout = true, rolled_back = true, unknown = true}

function m.provesGroup(id, t)
  local group = t.guard and string.sub(t.guard, 1, 1) == 'p' and
    string.match(m.traits(id, t), '^%S+ (%S+)')
  return group and group ~= '-' and group
end

function m.unproven(id, t)
  local group = m.provesGroup(id, t)
  if not group or m.holds(id, 'group/' .. group) then return false end
  local now = t.unproven and t.unproven[group]
  return now or call('HGET', t.key, 'unproven:' .. group)
end

function m.proveNone(id, t, outcome)
  local group = m.FAILS_PROOF[outcome] and m.provesGroup(id, t)
  if not group then return end
  t.unproven = t.unproven or {}
  t.unproven[group] = m.hostOf(id) .. ' of its group ended ' .. outcome
  m.w('HSET', t.key, 'unproven:' .. group, t.unproven[group])
end

-- settle handles the end of a job that may hold something. No other job may disturb the group if
-- the effect of a disruptive job on its host is not known, if the host is only half restored, or if
-- a part of the job may still act there.
function m.settle(id, t, o)
  m.proveNone(id, t, o.outcome)
  for _, name in ipairs(m.needs(id, t)) do
    if (o.outcome == 'unknown' or o.keep or o.half) and string.sub(name, 1, 6) == 'group/' then
      m.drop(id, name)
      m.freezeGroup(name, id, o.err or '')
    elseif m.drop(id, name) then
      m.wakeNext(name)
    end
  end
end

function m.freezeGroup(name, id, why)
  m.enter(m.FROZEN, name, id .. ' ' .. m.at .. ' ' .. why)
  m.event('freeze-group', string.sub(name, 7), '{"job":' .. cjson.encode(id) .. ',"note":' ..
    cjson.encode(why) .. '}')
end

-- doubt freezes the groups that a job holds together with another: Redis had forgotten one of them,
-- and nobody knows what the two have done to each other.
function m.doubt(id, list)
  for _, name in ipairs(list) do
    if string.sub(name, 1, 6) == 'group/' and m.sem(name).holders > 1 and
      not m.holds(m.FROZEN, name) then
      m.freezeGroup(name, id, 'it runs beside another one of its group: Redis had forgotten one')
    end
  end
end

-- waiting reports whether a waiter still waits.
function m.waiting(id)
  local record = m.record(id)
  local state = record and string.match(record, '^%l+')
  return (not state or state == 'blocked' or state == 'lost') and call('ZSCORE', m.kAgain, id)
end

function m.forward(id)
  m.wAfter('ZADD', m.kAgain, 'XX', m.at, id)
  m.wAfter('PUBLISH', m.kWake, '')
  m.woken = true
end

-- wakeFor makes the job that waits longest for a host due at once.
function m.wakeFor(host)
  local key = m.kWait .. 'host/' .. host
  for _, waiter in ipairs(call('ZRANGE', key, '0', '4')) do
    m.wAfter('ZREM', key, waiter)
    if m.waiting(waiter) then
      m.forward(waiter)
      return
    end
  end
end

-- turns returns the first tasks that wait for a resource, in the order of their turns, each with
-- its first jobs. It reads them once a call.
function m.turns(name)
  local s = m.sem(name)
  if not s.turns then
    local last = call('ZRANGE', m.kWait .. name, '-1', '-1', 'WITHSCORES')
    s.turns, s.last = {}, m.num(last[2])
    for _, task in ipairs(call('ZRANGE', m.kWait .. name, '0', '9')) do
      local ids = call('ZRANGE', m.kWait .. name .. ':' .. task, '0', '9')
      s.turns[#s.turns + 1] = {task = task, ids = ids, at = 1, all = #ids < 10}
    end
  end
  return s.turns
end

-- wakeNext makes one waiter of a semaphore due at once, if there is room, and keeps the room for it
-- during this call. It returns true if there is a waiter.
function m.wakeNext(name)
  local s = m.sem(name)
  if not s.waits or not m.room(s) then return false end
  local turns = m.turns(name)
  while turns[1] do
    local turn = table.remove(turns, 1)
    while turn.ids[turn.at] do
      local id = turn.ids[turn.at]
      turn.at = turn.at + 1
      m.wAfter('ZREM', m.kWait .. name .. ':' .. turn.task, id)
      if m.waiting(id) then
        s.last = math.max(s.last + 1, m.now)
        m.wAfter('ZADD', m.kWait .. name, m.us(s.last), turn.task)
        turns[#turns + 1] = turn
        s.kept = s.kept + 1
        m.forward(id)
        return true
      end
    end
    if turn.all then m.wAfter('ZREM', m.kWait .. name, turn.task) end
  end
  return false
end

-- passOn serves a job that was woken and cannot run: the next waiter gets the resource that it
-- leaves free.
function m.passOn(list)
  for _, name in ipairs(list) do m.wakeNext(name) end
end

-- block moves a job aside until its resource is free, at most for a minute.
function m.block(id, j, t, from, name)
  local at = math.max(math.min(t.expires + j.later, m.now + m.MINUTE), m.now + 1000000)
  m.w('ZADD', m.kAgain, m.us(at), id)
  if from == m.kQueue or not j.state then m.toUnqueue[#m.toUnqueue + 1] = id end
  if j.state == 'retry' or j.state == 'wait' or j.state == 'deferred' or j.state == 'queued' then
    j.state = 'blocked'
    m.keep(id, j)
  end
  local key = m.kWait .. name
  if string.sub(name, 1, 5) == 'host/' then
    m.zone.waits = m.at
  else
    m.w('ZADD', key, 'NX', m.at, m.taskOf(id))
    m.w('PEXPIRE', key, m.DAY)
    m.sem(name).waits = true
    key = key .. ':' .. m.taskOf(id)
  end
  m.w('ZADD', key, 'NX', m.at, id)
  m.w('PEXPIRE', key, m.DAY)
end

-- customerPaused reports whether the customer of a job's host is paused.
function m.customerPaused(id, t)
  m.paused = m.paused or cjson.decode(m.zone.customers)
  return m.paused[string.match(m.traits(id, t), '^%S+')] ~= nil
end

-- places returns some of the hosts of a list, the ids of their jobs, and for each the scores in
-- queue, in again and in held, or false.
function m.places(task, list, from, most)
  local hosts, ids, n = {}, {}, 0
  for host in string.gmatch(list, '[^\n]+') do
    n = n + 1
    if n > from + most then break end
    if n > from then
      hosts[#hosts + 1] = host
      ids[#ids + 1] = task .. ':' .. host
    end
  end
  if #ids == 0 then return hosts, ids, {}, {}, {} end
  return hosts, ids, call('ZMSCORE', m.kQueue, unpack(ids)),
    call('ZMSCORE', m.kAgain, unpack(ids)), call('ZMSCORE', m.kHeld .. task, unpack(ids))
end

-- has reports whether a task has a job on a host, in any state.
function m.has(task, host)
  local id = task .. ':' .. host
  return m.record(id) or call('ZSCORE', m.kQueue, id) or
    call('ZSCORE', m.kAgain, id) or call('ZSCORE', m.kHeld .. task, id)
end

-- cancelled returns the end of a cancelled job: the end says if a part of the job has run, or may
-- have.
function m.cancelled(j, note)
  if string.find(j.saved, '"may_have_run":true', 1, true) then
    -- A command that may have run may still run: the host stays locked to the end of the lock.
    return {outcome = 'unknown', err = 'cancelled when a step may have run: ' .. note, keep = true}
  elseif j.state == 'verify' then
    return {outcome = 'unknown', err = 'cancelled before the host was back: ' .. note}
  elseif string.find(j.saved, '"failed":{', 1, true) then
    return {outcome = 'cancelled', err = 'cancelled in the middle of its on_fail: ' .. note,
      half = string.find(j.saved, '"disturbed":true', 1, true),
      keep = string.find(j.saved, '"keep":true', 1, true)}
  elseif string.find(j.saved, '"again":%d') then -- numbers alone: steps save texts
    return {outcome = 'cancelled',
      err = 'cancelled between two tries of step ' .. m.us(j.step + 1) .. ': ' .. note}
  elseif j.step > 0 then
    return {outcome = 'cancelled', err = 'cancelled after step ' .. m.us(j.step) .. ': ' .. note}
  end
  return {outcome = 'cancelled', err = note}
end
