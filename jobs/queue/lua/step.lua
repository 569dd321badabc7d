-- step: takes the results of jobs that a child had, and hands out new ones. One
-- call, so that finish + take next is one round trip. With want 0 and no slot it
-- is the sweep of a server: what expired ends, what is lost is seen.
--
-- KEYS 1 zone
-- ARGV 1 node  2 slot ('' for a sweep)  3 request id  4 want
--      5 what the caller's own clock expects TIME to be, µs ('' if not known)
--      6 tasks whose spec the caller has, separated by blanks
--      7 number of results, then 14 each: id, token, kind, outcome, class, exit,
--        error, delay µs, until µs, step, saved, release, keep, output
-- Returns {status, now, next, {late id …}, {grant, host JSON …}, {task, spec …}}
--      status: jobs | more | next | frozen | halted | absent (no key zone: call
--      epoch, then repeat). A grant is tab separated: id, token, mode, attempt,
--      tries, probes, crashes, step, due, timeout, bound, node before, saved.
-- Keeps: an unfinished job is in exactly one of queue, again, held:*; a host is
--      locked by one token; a repeated request id gets the earlier reply.

local node, slot, request, want = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local LOOKS = 20 -- candidates that may be moved aside in one call

begin()
if not zone.run then return {'absent', us(now)} end

local function lines(s)
  local out = {}
  for line in string.gmatch(s, '([^\n]*)\n') do out[#out + 1] = line end
  return out
end

local function words(s)
  local out = {}
  for word in string.gmatch(s, '%S+') do out[#out + 1] = word end
  return out
end

local known = {}
for _, id in ipairs(words(ARGV[6])) do known[id] = true end

-- reply adds to the grants what the caller needs with them.
local function reply(status, at, late, grants)
  local jobs, specs = {}, {}
  for _, g in ipairs(grants) do
    local id = string.match(g, '^[^\t]+')
    local tid = taskOf(id)
    local t = task(tid)
    jobs[#jobs + 1] = g
    jobs[#jobs + 1] = t and call('HGET', kHosts(t.inventory), hostOf(id)) or ''
    if not known[tid] then
      known[tid] = true
      specs[#specs + 1] = tid
      specs[#specs + 1] = call('HGET', kTask(tid), 'spec') or ''
    end
  end
  return {status, us(now), at, late, jobs, specs}
end

-- What the slot held before this call: id to token.
local held = {}
if slot ~= '' then
  local before = call('HGET', kHold(node), slot)
  if before then
    local line = lines(before)
    if line[1] == request then
      local answer = words(line[2])
      local grants = {}
      for i = 5, #line do grants[#grants + 1] = line[i] end
      return reply(answer[1], answer[2], words(line[3]), grants)
    end
    local pairsHeld = words(line[4])
    for i = 1, #pairsHeld, 2 do held[pairsHeld[i]] = pairsHeld[i + 1] end
  end
end

if ARGV[5] ~= '' and math.abs(raw - tonumber(ARGV[5])) > MINUTE and zone.frozen <= now then
  freeze('TIME jumped by ' .. us((raw - tonumber(ARGV[5])) / 1000000) .. ' s', true)
end

local seen = {} -- ids that this call has dealt with
local late = {}

-- rescore keeps a job for another attempt.
local function rescore(i, id, j, t)
  local kind, delay = ARGV[i + 2], tonumber(ARGV[i + 7])
  local keep, release = ARGV[i + 12] == '1', ARGV[i + 11] == '1'
  local at = now + delay
  local set = {'HSET', kJob(id), 'step', ARGV[i + 9]}
  local function put(field, value)
    set[#set + 1] = field
    set[#set + 1] = value
  end
  if ARGV[i + 10] ~= '' then put('saved', ARGV[i + 10]) end
  if j.state == 'running' then count(t, 'running', -1) end

  if kind == 'back' and j.attempt <= 1 then
    -- Nothing was done: as if it had not been taken.
    w('ZADD', kQueue, us(j.due), id)
    w('ZREM', kAgain, id)
    w('DEL', kJob(id))
    unlock(id, j.token)
    event('back', id)
    return
  end

  if kind == 'retry' then
    put('state', 'retry')
    put('tries', us(j.tries + 1))
    if keep and locked(hostOf(id)) == j.token .. ' ' .. id then
      at = math.max(at, now + lockTTL(hostOf(id)) + 1000)
    end
  elseif kind == 'wait' or kind == 'verify' then
    put('state', kind)
    if kind == 'verify' then put('probes', us(j.probes + 1)) end
    if kind == 'verify' or not release then
      keep = true
      local lock, value = locked(hostOf(id)), j.token .. ' ' .. id
      if not lock or lock == value then
        w('SET', kLock(hostOf(id)), value, 'PX', us(math.ceil((delay + t.timeout) / 1000)))
        locks[hostOf(id)] = value
      end
    end
  elseif kind == 'defer' then
    at = tonumber(ARGV[i + 8])
    put('state', 'deferred')
    put('attempt', us(j.attempt - 1))
    put('expires', us(at + t.expires - t.due))
  else -- back, of a job that had earlier attempts
    put('state', j.lost and 'lost' or 'retry')
    put('attempt', us(j.attempt - 1))
    at, keep = now, j.lost
  end
  put('due', us(at))
  w('ZADD', kAgain, us(at), id)
  w(unpack(set))
  if not keep then unlock(id, j.token) end
  local err = ARGV[i + 6]
  event(kind, id, '{"at":' .. us(at) .. (err ~= '' and ',"error":' .. cjson.encode(err) or '') .. '}')
end

local function result(i)
  local id, token = ARGV[i], ARGV[i + 1]
  local j = job(id)
  held[id] = nil
  seen[id] = true
  if j.token ~= token or (j.state ~= 'running' and j.state ~= 'lost') then
    if not (j.token == token and j.state == 'ended' and j.outcome == ARGV[i + 3]) then
      late[#late + 1] = id
      event('late', id, '{"token":' .. token .. ',"kind":"' .. ARGV[i + 2] .. '","outcome":"' ..
        ARGV[i + 3] .. '"}')
    end
    return
  end
  local output = ARGV[i + 13]
  if output ~= '' then
    -- A ZREM that finds nothing: see finish in the prelude.
    w('ZREM', kQueue, id)
    w('XADD', kOut(id), 'MAXLEN', '~', '1000', '*', 'attempt', us(j.attempt), 'data', output)
    w('PEXPIRE', kOut(id), DAY)
  end
  local t = task(taskOf(id))
  if ARGV[i + 2] == 'end' or not t then
    finish(id, j, {outcome = ARGV[i + 3], class = ARGV[i + 4], exit = ARGV[i + 5],
      err = ARGV[i + 6], keep = ARGV[i + 12] == '1'})
  else
    rescore(i, id, j, t)
  end
end

for r = 0, tonumber(ARGV[7]) - 1 do result(8 + 14 * r) end

-- Taking. -------------------------------------------------------------------

local grants = {}
local lastToken = zone.token

local function block(id, j, t, from)
  w('ZADD', kAgain, us(math.max(math.min(t.expires, now + MINUTE), now + 1000000)), id)
  if from == kQueue then w('ZREM', kQueue, id) end
  if j.state == 'retry' or j.state == 'wait' or j.state == 'deferred' then
    w('HSET', kJob(id), 'state', 'blocked')
  end
  local key = kWait('host/' .. hostOf(id))
  w('ZADD', key, 'NX', us(now), id)
  w('PEXPIRE', key, DAY)
end

local function grant(id, j, t, from, lost, mine)
  local host = hostOf(id)
  lastToken = math.max(lastToken + 1, now)
  local token = us(lastToken)
  local mode = lost and 'lost' or (j.attempt == 0 and 'fresh' or 'continue')
  local ms, bound = math.ceil(t.timeout / 1000), 0
  if lost and mine then
    -- The old attempt may still act on the host: its lock keeps its end.
    bound = lockTTL(host)
    ms = math.max(bound / 1000, 1)
  end
  local due = j.due > 0 and j.due or t.due
  w('SET', kLock(host), token .. ' ' .. id, 'PX', us(ms))
  locks[host] = token .. ' ' .. id
  w('ZADD', kAgain, us(now + t.timeout + lockDelay(t.timeout)), id)
  if from == kQueue then w('ZREM', kQueue, id) end
  local set = {'HSET', kJob(id), 'state', 'running', 'token', token, 'attempt', us(j.attempt + 1),
    'node', node .. '/' .. slot, 'due', us(due)}
  if not j.started then
    set[#set + 1] = 'started'
    set[#set + 1] = us(now)
  end
  if lost then
    set[#set + 1] = 'lost'
    set[#set + 1] = '1'
  end
  w(unpack(set))
  if j.lost and not lost then w('HDEL', kJob(id), 'lost') end
  if from == kAgain and (not j.state or j.state == 'blocked') then
    w('ZREM', kWait('host/' .. host), id)
  end
  if j.state ~= 'running' then count(t, 'running', 1) end
  if not t.started then
    t.started = us(now)
    w('HSET', kTask(taskOf(id)), 'started', t.started)
  end
  event('take', id, '{"node":"' .. node .. '/' .. slot .. '","attempt":' .. us(j.attempt + 1) ..
    (lost and ',"lost":true' or '') .. '}')
  held[id] = token
  grants[#grants + 1] = table.concat({id, token, mode, us(j.attempt + 1), us(j.tries),
    us(j.probes), us(j.crashes), us(j.step), us(due), us(t.timeout), us(bound), j.node, j.saved},
    '\t')
end

-- see recognises a lost job for people where nobody may take it. It stays due,
-- for the next master; only one that nobody took for a minute steps back, so that
-- a sweep sees those behind it.
local function see(id, j)
  if j.state == 'running' then
    count(task(taskOf(id)), 'running', -1)
    w('HSET', kJob(id), 'state', 'lost')
    w('ZADD', kAgain, 'XX', us(now), id)
    event('lost', id, '{"node":"' .. j.node .. '","why":"not heard of again"}')
  elseif num(call('ZSCORE', kAgain, id)) < now - MINUTE then
    w('ZADD', kAgain, 'XX', us(now + MINUTE), id)
  end
end

-- consider deals with one due job. Whoever meets a job that cannot run moves
-- it: nothing may block the front.
local function consider(id, from)
  if seen[id] then return end
  seen[id] = true
  local t = task(taskOf(id))
  if not t then
    w('ZREM', from, id)
    event('orphan', id, '{"why":"its task is gone"}')
    return
  end
  local j = job(id)
  if j.state == 'ended' then
    w('ZREM', kQueue, id)
    w('ZREM', kAgain, id)
    return
  end
  local lock = locked(hostOf(id))
  local mine = lock and j.token and lock == j.token .. ' ' .. id
  if j.state == 'running' and mine then
    -- The lock outlives the score: its end decides, not the clock.
    w('ZADD', kAgain, 'XX', us(now + lockTTL(hostOf(id)) + lockDelay(t.timeout)), id)
    return
  end
  local lost = j.state == 'running' or j.state == 'lost'
  local expires = j.expires > 0 and j.expires or t.expires
  if not lost and t.cancel then
    finish(id, j, {outcome = 'cancelled', err = t.cancel})
  elseif not lost and t.paused then
    w('ZADD', kHeld(taskOf(id)), us(now), id)
    w('ZREM', from, id)
  elseif j.attempt == 0 and not lost and expires <= now then
    finish(id, j, {outcome = 'expired', err = 'did not start before its expiry'})
  elseif lock and not mine then
    block(id, j, t, from)
  elseif want > 0 then
    grant(id, j, t, from, lost, mine)
  elseif lost then
    see(id, j)
  end
end

-- A source gives due ids from the front, page by page.
local function source(key)
  local s = {key = key, page = {}, at = 1, offset = 0}
  local size = want
  function s.peek()
    if s.at > #s.page then
      if s.dry then return nil end
      s.page = call('ZRANGEBYSCORE', key, '-inf', us(now), 'LIMIT', s.offset, size)
      s.offset, s.at, s.dry = s.offset + #s.page, 1, #s.page < size
      size = LOOKS
    end
    return s.page[s.at]
  end
  return s
end

-- sweep looks at the front of both sources without taking. It is true if it
-- changed all that it looked at, of a full page: there may be more to do.
local function sweep()
  local more = false
  for _, key in ipairs({kAgain, kQueue}) do
    local ids = call('ZRANGEBYSCORE', key, '-inf', us(now), 'LIMIT', 0, LOOKS)
    local changed = 0
    for _, id in ipairs(ids) do
      local before = planned
      consider(id, key)
      if planned > before then changed = changed + 1 end
    end
    more = more or changed == LOOKS
  end
  return more
end

local looks = 0
local function take()
  local again, queue = source(kAgain), source(kQueue)
  local turn = zone.turn
  while looks < want + LOOKS and #grants < want do
    local s = again
    if not again.peek() then
      s = queue
    else
      -- Started work first, but every fourth from the queue, so that neither
      -- a crowd of retries nor a backlog starves the other.
      turn = turn + 1
      if turn % 4 == 0 and queue.peek() then s = queue end
    end
    local id = s.peek()
    if not id then break end
    s.at = s.at + 1
    looks = looks + 1
    consider(id, s.key)
  end
  zone.turn = turn % 4
end

local status, at, more = 'next', '0', false
if zone.frozen > now then
  status, at = 'frozen', us(zone.frozen)
elseif zone.halted then
  status = 'halted'
elseif want == 0 and slot == '' then
  more = sweep()
elseif want > 0 then
  take()
  more = looks >= want + LOOKS or woken
end
if #grants > 0 or looks > 0 or planned > 0 then
  w('HSET', kZone, 'high', us(now), 'token', us(lastToken), 'turn', us(zone.turn))
end
flush()

if #grants > 0 then
  status = 'jobs'
elseif more then
  status = 'more'
elseif status == 'next' then
  for _, key in ipairs({kQueue, kAgain}) do
    local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if first[2] and (at == '0' or tonumber(first[2]) < tonumber(at)) then
      at = us(tonumber(first[2]))
    end
  end
end

if slot ~= '' then
  local mine = {}
  for id, token in pairs(held) do mine[#mine + 1] = id .. ' ' .. token end
  local text = {request, status .. ' ' .. at, table.concat(late, ' '), table.concat(mine, ' ')}
  for _, g in ipairs(grants) do text[#text + 1] = g end
  call('HSET', kHold(node), slot, table.concat(text, '\n') .. '\n')
end
return reply(status, at, late, grants)
