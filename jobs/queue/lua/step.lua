-- step: takes the results of jobs that a child had, and hands out new ones. One
-- call, so that finish + take next is one round trip. With want 0 and no slot it
-- is the sweep of a server: what expired ends, what is lost is seen.
--
-- KEYS 1 zone
-- ARGV 1 node  2 slot ('' for a sweep)  3 request id  4 want
--      5 what the caller's own clock expects TIME to be, µs ('' if not known)
--      6 tasks whose spec the caller has, separated by blanks
--      7 when the caller sent this, by its estimate of TIME, µs
--      8 number of results, then 14 each: id, token, kind, outcome, class, exit,
--        error, delay µs, until µs, step, saved (of an end: a note for people),
--        release, keep, output (a record, see output.go)
-- Returns {status, now, next, {late id …}, {grant, host JSON …}, {task, spec …}}
--      status: jobs | more | next | frozen | halted | absent (no key zone: call
--      epoch, then repeat) | stale (a copy of an old call that was delayed: a
--      later one of this slot was answered; a living caller repeats) | skewed (TIME
--      is off by more than a minute: nothing was done; the caller finds out why).
--      A grant is tab separated: id, token, mode, attempt,
--      tries, probes, crashes, step, due, timeout, bound, node before, saved.
-- Keeps: an unfinished job is in exactly one of queue, again, held:*; a host is
--      locked by one token; a repeated request id gets the earlier reply.

m.node, m.slot, m.request, m.want = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
m.LOOKS = 20 -- candidates that may be moved aside in one call

m.begin()
if not m.zone.run then return {'absent', m.at} end

function m.lines(s)
  local out = {}
  for line in string.gmatch(s, '([^\n]*)\n') do out[#out + 1] = line end
  return out
end

function m.words(s)
  local out = {}
  for word in string.gmatch(s, '%S+') do out[#out + 1] = word end
  return out
end

m.known = {}
for _, id in ipairs(m.words(ARGV[6])) do m.known[id] = true end

-- reply adds to the grants what the caller needs with them.
function m.reply(status, at, lateIDs, list)
  local jobs, specs = {}, {}
  for _, g in ipairs(list) do
    local id = string.match(g, '^[^\t]+')
    local tid = m.taskOf(id)
    local t = m.task(tid)
    jobs[#jobs + 1] = g
    jobs[#jobs + 1] = t and call('HGET', m.kHosts .. t.inventory, m.hostOf(id)) or ''
    if not m.known[tid] then
      m.known[tid] = true
      specs[#specs + 1] = tid
      specs[#specs + 1] = call('HGET', m.kTask .. tid, 'spec') or ''
    end
  end
  return {status, m.at, at, lateIDs, jobs, specs}
end

-- What the slot held before this call: id to token.
m.held = {}
if m.slot ~= '' then
  local before = call('HGET', m.kHold .. m.node, m.slot)
  if before then
    local line = m.lines(before)
    local last, sent = string.match(line[1], '^(%S+) (%d+)')
    -- A stamp from the future is that of a clock that was wrong.
    local old = m.num(ARGV[7]) < m.num(sent) and m.num(sent) < m.raw + m.MINUTE
    if last ~= m.request and old then return {'stale', m.at} end
    if last == m.request then
      local answer = m.words(line[2])
      local earlier = {}
      for i = 5, #line do earlier[#earlier + 1] = line[i] end
      return m.reply(answer[1], answer[2], m.words(line[3]), earlier)
    end
    local pairsHeld = m.words(line[4])
    for i = 1, #pairsHeld, 2 do m.held[pairsHeld[i]] = pairsHeld[i + 1] end
  end
end

-- Either Redis' clock jumped, or somebody slept between the sending of this call and
-- now. Only the caller can tell which, with another call.
local skew = ARGV[5] ~= '' and m.raw - tonumber(ARGV[5]) or 0
if math.abs(skew) > m.MINUTE then return {'skewed', m.at} end

m.seen = {} -- ids that this call has dealt with
m.late = {}

function m.result(i)
  local id, token = ARGV[i], ARGV[i + 1]
  local ends = ARGV[i + 2] == 'end'
  local j = ends and m.jobToEnd(id) or m.job(id)
  m.held[id] = nil
  m.seen[id] = true
  if j.token ~= token or (j.state ~= 'running' and j.state ~= 'lost') then
    if not (j.token == token and j.state == 'ended' and j.outcome == ARGV[i + 3]) then
      m.late[#m.late + 1] = id
      m.event('late', id, '{"token":' .. token .. ',"kind":"' .. ARGV[i + 2] .. '","outcome":"' ..
        ARGV[i + 3] .. '"}')
    end
    return
  end
  local output = ARGV[i + 13]
  if output ~= '' then
    if j.live == token then m.replaceLive(id, token) end
    m.w('XADD', m.kOut .. id, 'MAXLEN', '~', '1000', '*', 'said', output)
    m.w('PEXPIRE', m.kOut .. id, m.DAY)
  end
  local t = m.task(m.taskOf(id))
  if ends or not t then
    m.finish(id, j, {outcome = ARGV[i + 3], class = ARGV[i + 4], exit = ARGV[i + 5],
      err = ARGV[i + 6], note = ARGV[i + 10], keep = ARGV[i + 12] == '1'})
  else
    m.rescore(i, id, j, t)
  end
end

for r = 0, tonumber(ARGV[8]) - 1 do m.result(9 + 14 * r) end

-- Taking. -------------------------------------------------------------------

m.grants = {}
m.lastToken = m.zone.token

function m.grant(id, j, t, from, lost, mine, list)
  local host = m.hostOf(id)
  m.lastToken = math.max(m.lastToken + 1, m.now)
  local token = m.us(m.lastToken)
  local mode = lost and 'lost' or (j.attempt == 0 and 'fresh' or 'continue')
  -- The lock lasts from the token on, also where that is ahead of Redis' clock.
  local ms, bound = math.ceil((m.lastToken - m.raw + t.timeout) / 1000), 0
  if lost and mine then
    -- The old attempt may still act on the host: its lock keeps its end.
    bound = m.lockTTL(host)
    ms = math.max(bound / 1000, 1)
  end
  local due = m.us(j.due > 0 and j.due or t.due)
  local attempt = m.us(j.attempt + 1)
  local n = #m.toTake
  m.toTake[n + 1], m.toTake[n + 2], m.toTake[n + 3] = m.kLock .. host, token .. ' ' .. id, m.us(ms)
  m.locks[host] = m.toTake[n + 2]
  m.toTime[#m.toTime + 1] = m.us(m.now + t.timeout + m.lockDelay(t.timeout))
  m.toTime[#m.toTime + 1] = id
  if from == m.kQueue then m.toUnqueue[#m.toUnqueue + 1] = id end
  local set = {'HSET', m.kJob .. id, 'state', 'running', 'token', token, 'attempt', attempt,
    'node', m.node .. '/' .. m.slot, 'due', due}
  if not j.started then
    set[#set + 1] = 'started'
    set[#set + 1] = m.at
  end
  if lost then
    set[#set + 1] = 'lost'
    set[#set + 1] = '1'
  elseif j.lost then
    m.wAfter('HDEL', m.kJob .. id, 'lost')
  end
  m.planAfter[#m.planAfter + 1] = set
  if from == m.kAgain and m.zone.waits and (not j.state or j.state == 'blocked') then
    m.wAfter('ZREM', m.kWait .. 'host/' .. host, id)
  end
  if j.state ~= 'running' then m.count(t, 'running', 1) end
  if not t.started then
    t.started = m.at
    m.w('HSET', m.kTask .. m.taskOf(id), 'started', t.started)
  end
  m.event('take', id, '{"node":"' .. m.node .. '/' .. m.slot .. '","attempt":' .. attempt ..
    (lost and ',"lost":true' or '') .. '}')
  if list then m.acquire(id, list, token) end
  m.held[id] = token
  m.grants[#m.grants + 1] = table.concat({id, token, mode, attempt, j.tries, j.probes, j.crashes,
    j.step, due, m.us(t.timeout), m.us(bound), j.node, j.saved}, '\t')
end

-- consider deals with one due job. Whoever meets a job that cannot run moves
-- it: nothing may block the front.
function m.consider(id, from)
  if m.seen[id] then return end
  m.seen[id] = true
  local t = m.task(m.taskOf(id))
  if not t then
    m.w('ZREM', from, id)
    m.event('orphan', id, '{"why":"its task is gone"}')
    return
  end
  -- What is in queue has never started: there is nothing to read.
  local j = from == m.kQueue and m.freshJob() or m.job(id)
  if j.state == 'ended' then
    m.toDrop[#m.toDrop + 1] = id
    return
  end
  local lock = m.locked(m.hostOf(id))
  local mine = lock and j.token and lock == j.token .. ' ' .. id
  if j.state == 'running' and mine then
    -- The lock outlives the score: its end decides, not the clock.
    m.w('ZADD', m.kAgain, 'XX', m.us(m.now + m.lockTTL(m.hostOf(id)) + m.lockDelay(t.timeout)), id)
    return
  end
  local lost = j.state == 'running' or j.state == 'lost'
  local list = t.guard and m.needs(id, t)
  local lack = m.fate(id, j, t, from, lost)
  if not lack and lock and not mine then lack = 'host/' .. m.hostOf(id) end
  if not lack and list and not lost then lack = m.lacks(id, list, from == m.kQueue) end
  if not lack and m.want > 0 then
    m.grant(id, j, t, from, lost, mine, list)
  elseif not lack and lost then
    m.see(id, j)
  elseif lack and lack ~= '' then
    m.block(id, j, t, from, lack)
  end
  if lack and list and from == m.kAgain then m.passOn(list) end
end

-- fate ends or lays aside a job that is not to run, and is '' then.
function m.fate(id, j, t, from, lost)
  if lost then return nil end
  local expires = j.expires > 0 and j.expires or t.expires
  if t.cancel or j.cancel then
    m.finish(id, j, m.cancelled(j, t.cancel or j.cancel))
    m.toUnqueue[#m.toUnqueue + 1] = id
  elseif t.by and not j.started and m.has(t.by, m.hostOf(id)) then
    m.finish(id, j, {outcome = 'superseded', err = 'superseded by task ' .. t.by})
    m.toUnqueue[#m.toUnqueue + 1] = id
  elseif j.state ~= 'verify' and (t.paused or m.zone.customers and m.customerPaused(id, t)) then
    -- A host that was disturbed is looked after all the same.
    m.w('ZADD', m.kHeld .. m.taskOf(id), m.at, id)
    m.w('SADD', m.kParked, m.taskOf(id))
    m.wAfter('ZREM', from, id)
  elseif j.attempt == 0 and expires <= m.now then
    m.finish(id, j, {outcome = 'expired', err = 'did not start before its expiry'})
    m.toUnqueue[#m.toUnqueue + 1] = id
  else
    return nil
  end
  return ''
end

-- A source gives due ids from the front, page by page.
function m.source(key)
  local s = {key = key, page = {}, at = 1, offset = 0}
  local size = m.want
  function s.peek()
    if s.at > #s.page then
      if s.dry then return nil end
      s.page = call('ZRANGEBYSCORE', key, '-inf', m.at, 'LIMIT', m.us(s.offset), m.us(size))
      s.offset, s.at, s.dry = s.offset + #s.page, 1, #s.page < size
      size = m.LOOKS
    end
    return s.page[s.at]
  end
  return s
end

m.looks = 0
function m.take()
  local again, queue = m.source(m.kAgain), m.source(m.kQueue)
  local turn = m.zone.turn
  while m.looks < m.want + m.LOOKS and #m.grants < m.want do
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
    m.looks = m.looks + 1
    m.consider(id, s.key)
  end
  m.zone.turn = turn % 4
end

local status, at, more = 'next', '0', false
if m.zone.frozen > m.now then
  status, at = 'frozen', m.us(m.zone.frozen)
elseif m.zone.halted or m.zone.paused then
  status = 'halted'
elseif m.want == 0 and m.slot == '' then
  more = m.sweep()
elseif m.want > 0 then
  m.take()
  more = m.looks >= m.want + m.LOOKS or m.woken
end
if m.planned() > 0 then
  m.w('HSET', m.kZone, 'high', m.at, 'token', m.us(m.lastToken), 'turn', m.us(m.zone.turn),
    'waits', m.zone.waits or '0')
end
m.flush(true)

if #m.grants > 0 then
  status = 'jobs'
elseif more then
  status = 'more'
elseif status == 'next' then
  for _, key in ipairs({m.kQueue, m.kAgain}) do
    local first = call('ZRANGE', key, '0', '0', 'WITHSCORES')
    if first[2] and (at == '0' or tonumber(first[2]) < tonumber(at)) then
      at = m.us(tonumber(first[2]))
    end
  end
end

if m.slot ~= '' then
  local mine = {}
  for id, token in pairs(m.held) do mine[#mine + 1] = id .. ' ' .. token end
  local text = {m.request .. ' ' .. ARGV[7], status .. ' ' .. at, table.concat(m.late, ' '),
    table.concat(mine, ' ')}
  for _, g in ipairs(m.grants) do text[#text + 1] = g end
  call('HSET', m.kHold .. m.node, m.slot, table.concat(text, '\n') .. '\n')
end
return m.reply(status, at, m.late, m.grants)
