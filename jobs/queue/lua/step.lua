-- step: takes the results of jobs that a child had, and hands out new ones. One
-- call, so that finish + take next is one round trip. With want 0 and no slot it
-- is the sweep of a server: what expired ends, what is lost is seen.
--
-- KEYS 1 zone
-- ARGV 1 node  2 slot ('' for a sweep)  3 request id  4 want
--      5 what the caller's own clock expects TIME to be, µs ('' if not known)
--      6 tasks whose spec the caller has, separated by blanks
--      7 when the caller sent this, by its estimate of TIME, µs
--      8 number of results, then 15 each: id, token, kind, outcome, class, exit,
--        error, delay µs, until µs, step, saved (of an end: a note for people),
--        release, keep, output (a record, see output.go), spent (a ledger, see
--        jobs/times.go)
-- Returns {status, now, next, {late id …}, {grant, host JSON …}, {task, spec …}}
--      status: jobs | more | next | frozen | halted | absent (no key zone: call
--      epoch, then repeat) | stale (a copy of an old call that was delayed: a
--      later one of this slot was answered; a living caller repeats) | skewed (TIME
--      is off by more than a minute: nothing was done; the caller finds out why).
--      A grant is tab separated: id, token, mode, attempt,
--      tries, probes, crashes, step, due, timeout, bound, node before, spent, saved.
-- Keeps: an unfinished job is in exactly one of queue, again, held:*; a host is
--      locked by one token; a repeated request id gets the earlier reply.

m.LOOKS = 20 -- candidates that may be moved aside in one call

-- reply adds to the grants what the caller needs with them: hosts and specs.
function m.reply(status, at, lateIDs, ids, list)
  local jobs, specs, known, asks = {}, {}, ' ' .. ARGV[6], {}
  for i, id in ipairs(ids) do
    local tid = sub(id, 1, 10)
    local t = m.task(tid)
    jobs[2 * i - 1], jobs[2 * i] = list[i], ''
    if t then
      local ask = asks[t.inventory]
      if not ask then
        ask = {places = {}}
        asks[t.inventory] = ask
      end
      ask[#ask + 1], ask.places[#ask + 1] = sub(id, 12), 2 * i
    end
    if not string.find(known, tid, 1, true) then
      known = known .. ' ' .. tid
      specs[#specs + 1] = tid
      specs[#specs + 1] = call('HGET', m.kTask .. tid, 'spec') or ''
    end
  end
  for inventory, ask in pairs(asks) do
    local hosts = call('HMGET', m.kHosts .. inventory, unpack(ask))
    for i, place in ipairs(ask.places) do jobs[place] = hosts[i] or '' end
  end
  return {status, m.at, at, lateIDs, jobs, specs}
end

-- before finds what the slot held before this call, and the answer of a call that
-- is not to be carried out.
function m.before()
  local before = call('HGET', m.kHold .. m.node, m.slot)
  if not before then return nil end
  local last, sent, held = string.match(before, '^(%S+) (%d+)\n[^\n]*\n[^\n]*\n([^\n]*)\n')
  if last == m.request then return m.earlier(before) end
  -- A stamp from the future is that of a clock that was wrong.
  if m.num(ARGV[7]) < m.num(sent) and m.num(sent) < m.raw + m.MINUTE then return {'stale', m.at} end
  for id, token in string.gmatch(held, '(%S+) (%S+)') do m.held[id] = token end
end

-- ended takes a result of nearly every kind: the job runs, has succeeded or failed
-- without words, and its host has nothing else to wait for. Else it is false. What it
-- does is what finish and unlock would do.
function m.ended(i)
  local id, token, outcome, exit = ARGV[i], ARGV[i + 1], ARGV[i + 3], ARGV[i + 5]
  local t, r = m.tasks[sub(id, 1, 10)], m.records[id]
  local begun = tonumber(token)
  if not (t and t.plain and r and ARGV[i + 2] == 'end' and ARGV[i + 4] == '' and
      ARGV[i + 6] == '' and ARGV[i + 10] == '' and ARGV[i + 12] == '0' and
      ARGV[i + 13] == '' and not m.zone.waits and
      sub(r, 1, 10) == 'running 0 ' and string.find(r, token .. ' ', 13, true) == 13 and
      m.now < begun + t.timeout - 1000) then return false end
  local host, n = sub(id, 12), #t.put
  if begun <= m.forgets and m.locks[host] ~= token .. ' ' .. id then return false end
  m.happened[#m.happened + 1] = 'end ' .. id .. ' {"outcome":"' .. outcome ..
    (exit == '' and '"}' or '","exit":' .. exit .. '}')
  m.count(t, outcome, 1)
  t.running = t.running - 1
  m.toFree[#m.toFree + 1] = host
  m.locks[host] = false
  t.put[n + 1] = sub(id, 11)
  t.put[n + 2] = 'ended 0 0 ' .. sub(r, 13) .. m.at .. ' ' .. outcome .. ' - ' ..
    (exit == '' and '-' or exit) .. '+' .. ARGV[i + 14] .. ' '
  m.toDrop[#m.toDrop + 1] = id
  return true
end

function m.results()
  local ids = {}
  for i = 9, 9 + 15 * tonumber(ARGV[8]) - 1, 15 do ids[#ids + 1] = ARGV[i] end
  m.readJobs(ids)
  m.forgets = m.num(m.zone.epoch) + m.zone.longest -- takes before it may be forgotten
  if m.forgets >= m.now then m.readLocks(ids) end
  for r = 1, #ids do
    m.held[ids[r]] = nil
    m.seen[ids[r]] = true
    if not m.ended(15 * r - 6) then m.result(15 * r - 6) end
  end
end

-- Taking. -------------------------------------------------------------------

-- peek is the due id at the front of a source, which is read page by page, with all
-- that is to be known of its jobs.
function m.peek(s)
  if s.at > #s.page then
    if s.dry then return nil end
    s.page = call('ZRANGEBYSCORE', s.key, '-inf', m.at, 'LIMIT', m.us(s.offset), m.us(s.size))
    s.offset, s.at, s.dry = s.offset + #s.page, 1, #s.page < s.size
    s.size = m.LOOKS
    if #s.page > 0 then
      if s.key == m.kAgain then m.readJobs(s.page) end
      m.readLocks(s.page)
    end
  end
  return s.page[s.at]
end

function m.source(key) return {key = key, page = {}, at = 1, offset = 0, size = m.want} end

-- fresh hands out a due job of queue if nothing is in its way, as nearly always.
-- Else it is false. What it does is what grant would do.
function m.fresh(id)
  local task, host = sub(id, 1, 10), sub(id, 12)
  local t = m.task(task)
  if not t or not t.plain or not t.started or m.locks[host] ~= false then return false end
  m.lastToken = math.max(m.lastToken + 1, m.now)
  local token, n = m.us(m.lastToken), #t.put
  m.locks[host] = token
  m.toTake[#m.toTake + 1] = host
  m.toTake[#m.toTake + 1] = m.us(m.lastToken + t.timeout) .. ' ' .. token .. ' ' .. id
  m.toTime[#m.toTime + 1] = m.again(t)
  m.toTime[#m.toTime + 1] = id
  m.toUnqueue[#m.toUnqueue + 1] = id
  m.count(t, 'running', 1)
  t.put[n + 1] = sub(id, 11)
  t.put[n + 2] = 'running 0 0 ' .. token .. ' 1 0 0 0 0 ' .. t.dueText .. ' 0 ' .. m.at .. ' ' ..
    m.who .. '\n\n\n'
  m.happened[#m.happened + 1] = 'take ' .. id .. ' {"node":"' .. m.who .. '","attempt":1}'
  m.held[id] = token
  n = #m.grants + 1
  m.granted[n] = id
  m.grants[n] = id .. '\t' .. token .. '\tfresh\t1\t0\t0\t0\t0\t' .. t.dueText .. '\t' ..
    t.timeoutText .. '\t0\t\t\t'
  return true
end

-- again is when the running jobs of a task are due, if nobody is heard of.
function m.again(t)
  if not t.again then t.again = m.us(m.now + t.timeout + m.lockDelay(t.timeout)) end
  return t.again
end

function m.take()
  local again, queue = m.source(m.kAgain), m.source(m.kQueue)
  local turn = m.zone.turn
  while m.looks < m.want + m.LOOKS and #m.grants < m.want do
    local s = again
    if not m.peek(again) then
      s = queue
    else
      -- Started work first, but every fourth from the queue, so that neither
      -- a crowd of retries nor a backlog starves the other.
      turn = turn + 1
      if turn % 4 == 0 and m.peek(queue) then s = queue end
    end
    local id = m.peek(s)
    if not id then break end
    s.at = s.at + 1
    m.looks = m.looks + 1
    if not m.seen[id] then
      m.seen[id] = true
      if s ~= queue or not m.fresh(id) then m.consider(id, s.key) end
    end
  end
  m.zone.turn = turn % 4
end

-- first is when the next job is due, if it is before at.
function m.first(at)
  for _, key in ipairs({m.kQueue, m.kAgain}) do
    local first = call('ZRANGE', key, '0', '0', 'WITHSCORES')
    if first[2] and (at == '0' or tonumber(first[2]) < tonumber(at)) then
      at = m.us(tonumber(first[2]))
    end
  end
  return at
end

-- remember keeps the answer for a repetition, and what the slot holds now.
function m.remember(status, at)
  local mine = {}
  for id, token in pairs(m.held) do mine[#mine + 1] = id .. ' ' .. token end
  local text = {m.request .. ' ' .. ARGV[7], status .. ' ' .. at, table.concat(m.late, ' '),
    table.concat(mine, ' ')}
  for i = 1, #m.grants do text[4 + i] = m.grants[i] end
  call('HSET', m.kHold .. m.node, m.slot, table.concat(text, '\n') .. '\n')
end

function m.run()
  m.node, m.slot, m.request, m.want = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
  m.who = m.node .. '/' .. m.slot
  m.begin()
  if not m.zone.run then return {'absent', m.at} end

  m.held = {} -- what the slot holds: id to token
  local instead = m.slot ~= '' and m.before()
  if instead then return instead end

  -- Either Redis' clock jumped, or somebody slept between the sending of this call and
  -- now. Only the caller can tell which, with another call.
  local skew = ARGV[5] ~= '' and m.raw - tonumber(ARGV[5]) or 0
  if math.abs(skew) > m.MINUTE then return {'skewed', m.at} end

  m.seen = {} -- ids that this call has dealt with
  m.late = {}
  if ARGV[8] ~= '0' then m.results() end

  m.grants = {}  -- as they are told …
  m.granted = {} -- … and their ids
  m.lastToken = m.zone.token
  m.looks = 0
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
    at = m.first(at)
  end
  if m.slot ~= '' then m.remember(status, at) end
  return m.reply(status, at, m.late, m.granted, m.grants)
end
