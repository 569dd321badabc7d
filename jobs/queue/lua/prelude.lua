-- prelude: what the scripts share. It stands in front of each of them, behind
-- the names of the keys (kQueue, kJob(id) …, made in keys.go).
--
-- The order in every script is: read and check everything, plan the writes with
-- w(), then flush(). Redis does not undo a script that fails half way, so the
-- writes of a job are ordered such that each prefix leaves it to be found and
-- healed by the next one who meets it.
--
-- Times are µs. As numbers they are exact (below 2^53); they leave Lua only
-- through us(), because Redis 7.0 would write 1.76e+15.

local call = redis.call

local DAY = '86400000'   -- ms; what ended is kept for a day
local MINUTE = 60000000  -- µs; who met a taken resource comes again after it

local function us(n) return string.format('%.0f', n) end
local function num(s) return s and tonumber(s) or 0 end

-- now is Redis' TIME, clamped to the highest seen; raw is as it was read.
local now, raw
local zone

local function begin()
  local t = call('TIME')
  local v = call('HMGET', kZone, 'run', 'epoch', 'frozen', 'halted', 'high', 'token', 'turn',
    'longest', 'born', 'strict')
  raw = tonumber(t[1]) * 1000000 + tonumber(t[2])
  now = math.max(raw, num(v[5]))
  zone = {run = v[1], epoch = v[2], frozen = num(v[3]), halted = v[4], token = num(v[6]),
    turn = num(v[7]), longest = num(v[8]), born = num(v[9]), strict = v[10] == '1'}
end

-- The plan of writes.
local plan, planned = {}, 0

local function w(...)
  planned = planned + 1
  plan[planned] = {...}
end

local function event(name, object, detail)
  w('XADD', kEvents, 'MAXLEN', '~', '1000000', '*', 'e', name, 'o', object, 'd', detail or '')
end

-- A task as the scripts need it; false if it is not there. Read once a call.
local tasks = {}

local function task(id)
  local t = tasks[id]
  if t ~= nil then return t end
  local v = call('HMGET', kTask(id), 'total', 'due', 'expires', 'timeout', 'committed', 'paused',
    'cancel', 'done', 'started', 'inventory', 'repeatable')
  if not v[1] then
    tasks[id] = false
    return false
  end
  t = {total = num(v[1]), due = num(v[2]), expires = num(v[3]), timeout = num(v[4]),
    committed = v[5], paused = v[6], cancel = v[7], done = num(v[8]), started = v[9],
    inventory = v[10] or '', repeatable = v[11] == '1', add = {}}
  tasks[id] = t
  return t
end

-- count changes a counter of a task.
local function count(t, field, by)
  t.add[field] = (t.add[field] or 0) + by
end

local function flush()
  for i = 1, planned do call(unpack(plan[i])) end
  plan, planned = {}, 0
  for id, t in pairs(tasks) do
    if t then
      for field, by in pairs(t.add) do
        if by ~= 0 then call('HINCRBY', kTask(id), field, by) end
      end
      local done = t.done + (t.add.done or 0)
      if done > t.done and done >= t.total then
        call('HSET', kTask(id), 'ended', us(now))
        call('PEXPIRE', kTask(id), DAY)
        call('XADD', kEvents, '*', 'e', 'task', 'o', id, 'd', '{"ended":true}')
      end
      t.done, t.add = done, {}
    end
  end
end

-- A job as far as it is kept: state is false before its first take.
local function job(id)
  local v = call('HMGET', kJob(id), 'state', 'token', 'attempt', 'tries', 'probes', 'crashes',
    'step', 'saved', 'due', 'node', 'outcome', 'expires', 'started', 'lost')
  return {state = v[1], token = v[2], attempt = num(v[3]), tries = num(v[4]), probes = num(v[5]),
    crashes = num(v[6]), step = num(v[7]), saved = v[8] or '', due = num(v[9]),
    node = v[10] or '', outcome = v[11], expires = num(v[12]), started = v[13],
    lost = v[14]}
end

local function taskOf(id) return string.sub(id, 1, 10) end
local function hostOf(id) return string.sub(id, 12) end

local function lockDelay(timeout) return math.max(5000000, timeout * 0.02) end

-- What holds a host, as it will be after the plan: "token id", or false.
local locks = {}

local function locked(host)
  if locks[host] == nil then locks[host] = call('GET', kLock(host)) end
  return locks[host]
end

local function lockTTL(host) return math.max(call('PTTL', kLock(host)), 0) * 1000 end

local woken = false -- somebody became due by this call, and is not seen by its own take

-- unlock gives the host of a job back, if the job holds it, and wakes the one
-- who waits longest for it.
local function unlock(id, token)
  local host = hostOf(id)
  if not token or locked(host) ~= token .. ' ' .. id then return end
  w('DEL', kLock(host))
  locks[host] = false
  local key = kWait('host/' .. host)
  for _, waiter in ipairs(call('ZRANGE', key, 0, 4)) do
    w('ZREM', key, waiter)
    if call('ZSCORE', kAgain, waiter) then
      w('ZADD', kAgain, 'XX', us(now), waiter)
      w('PUBLISH', kWake, '')
      woken = true
      return
    end
  end
end

-- finish ends a job. o: outcome, class, exit, err, keep (the host stays locked
-- until its lock ends by itself). The first write is a ZREM that usually finds
-- nothing: at maxmemory Redis lets all writes of a script pass once it has
-- begun with one that frees, so results land while submits are refused.
local function finish(id, j, o)
  local t = task(taskOf(id))
  w('ZREM', kQueue, id)
  local set = {'HSET', kJob(id), 'state', 'ended', 'outcome', o.outcome, 'ended', us(now)}
  local function also(field, value)
    if value and value ~= '' then
      set[#set + 1] = field
      set[#set + 1] = value
    end
  end
  also('class', o.class)
  also('exit', o.exit)
  also('error', o.err)
  w(unpack(set))
  w('PEXPIRE', kJob(id), DAY)
  if t then
    count(t, 'o:' .. o.outcome, 1)
    count(t, 'done', 1)
    if j.state == 'running' then count(t, 'running', -1) end
  end
  local detail = '{"outcome":"' .. o.outcome .. '"'
  if o.exit and o.exit ~= '' then detail = detail .. ',"exit":' .. o.exit end
  if o.err and o.err ~= '' then detail = detail .. ',"error":' .. cjson.encode(o.err) end
  event('end', id, detail .. '}')
  if not o.keep then unlock(id, j.token) end
  w('ZREM', kAgain, id)
end

-- thaw ends a freeze once every registered child has called epoch since.
local function thaw(children, epoch)
  if zone.frozen <= now or zone.strict then return end
  for _, at in pairs(children) do
    if at ~= epoch then return end
  end
  zone.frozen = 0
  w('HSET', kZone, 'frozen', '0')
  event('thaw', 'zone')
  w('PUBLISH', kWake, '')
end

-- children are the registered children of the zone: "node/slot" to the epoch
-- that each last said what it holds in.
local function children()
  local out, v = {}, call('HGETALL', kZone)
  for i = 1, #v, 2 do
    if string.sub(v[i], 1, 2) == 'n:' then out[string.sub(v[i], 3)] = v[i + 1] end
  end
  return out
end

-- freeze lets nothing be taken before the longest lock has ended or, unless it
-- is strict, before every child that was registered has said what it holds. It
-- is strict where nobody can know who was registered.
local function freeze(why, strict)
  zone.frozen, zone.strict = now + math.max(zone.longest, 10000000), strict
  w('HSET', kZone, 'frozen', us(zone.frozen), 'why', why, 'strict', strict and '1' or '0')
  event('freeze', 'zone', '{"why":' .. cjson.encode(why) .. ',"until":' .. us(zone.frozen) .. '}')
end
