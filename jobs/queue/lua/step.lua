-- step: takes the results of a child's jobs, and hands out new ones. It is one call, so that finish
-- and take next are one round trip. With want 0 and no slot it is the sweep of a server: overdue
-- jobs expire, and lost jobs are marked.
--
-- KEYS 1 zone
-- ARGV 1 node  2 slot ('' for a sweep)  3 request id; of a sweep: the rank in again at
--        which it begins, if the zone is halted  4 want
--      5 what the caller's own clock expects TIME to be, µs ('' if not known)
--      6 tasks whose spec the caller has, separated by blanks
--      7 when the caller sent this, by its estimate of TIME, µs
--      8 number of results, then 15 each: id, token, kind, outcome, class, exit,
--        error, delay µs, until µs, step, saved (of an end: a note for people),
--        release, keep, output (a record, see output.go), spent (a ledger, see
--        jobs/times.go, maybe with ~ and the proof of the node behind it); or 6, of
--        kind ended, an end with nothing else to say: id, token, kind, outcome, exit,
--        spent
-- Returns {status, now, next, number of late ids, late id …, number of grants,
--      grant, host JSON …, task, spec …}
--      status: jobs | more | next | frozen | halted | absent (no key zone: call
--      epoch, then repeat) | stale (a copy of an old call that was delayed: a
--      later one of this slot was answered; a living caller repeats) | skewed (TIME
--      is off by more than a minute: nothing was done; the caller finds out why).
--      next: of a sweep that was answered halted the rank for the next call, 0: it is over.
--      A grant is tab separated: id, token, mode, attempt,
--      tries, probes, crashes, step, due, timeout, bound, node before, spent, saved.
-- Keeps: an unfinished job is in exactly one of queue, again, held:*; a host is
--      locked by one token; a repeated request id gets the earlier reply.

m.LOOKS = 20 -- candidates that one call may move aside

-- The fields that run sets at every call before their first use (see library.lua).
m.SET = {'node', 'slot', 'request', 'want', 'who', 'raw', 'now', 'at', 'zone', 'held', 'seen',
  'late', 'grants', 'grantedTo', 'lastToken', 'tokenText', 'looks', 'forgets'}

-- reply adds the hosts and specs that the caller needs with its grants. It returns one flat list,
-- because Redis checks each table of an answer for all its possible meanings.
function m.reply(status, at)
  local late, list, to = m.late, m.grants, m.grantedTo
  local out = {status, m.at, at, #late, nil, nil, nil}
  for i = 1, #late do out[4 + i] = late[i] end
  local n = 5 + #late
  out[n] = #list
  local known, specs, task, t, inventory = ARGV[6], m.NONE, nil, nil, nil
  local hosts, places = {nil}, {nil}
  for i = 1, #list do
    if to[2 * i - 1] ~= task then
      task = to[2 * i - 1]
      t = m.task(task)
      if not string.find(known, task, 1, true) then
        known = known .. ' ' .. task
        if specs == m.NONE then specs = {} end
        specs[#specs + 1] = task
      end
    end
    n = n + 2
    out[n - 1], out[n] = list[i], ''
    inventory = inventory or t and t.inventory
    if t and t.inventory == inventory then -- nearly always all jobs have the same inventory
      local k = #hosts + 1
      hosts[k], places[k] = to[2 * i], n
    elseif t then
      out[n] = call('HGET', m.kHosts .. t.inventory, to[2 * i]) or ''
    end
  end
  if #hosts > 0 then
    local found = call('HMGET', m.kHosts .. inventory, unpack(hosts))
    for i = 1, #places do out[places[i]] = found[i] or '' end
  end
  for i = 1, #specs do
    out[#out + 1] = specs[i]
    out[#out + 1] = call('HGET', m.kTask .. specs[i], 'spec') or ''
  end
  return out
end

-- before finds the jobs that the slot held before this call, and the answer to a call that must not
-- be carried out. It searches from one mark to the next, because a pattern checks each byte by
-- itself.
function m.before()
  local before = call('HGET', m.kHold .. m.node, m.slot)
  if not before then return nil end
  local find = string.find
  local blank = find(before, ' ', 1, true)
  if sub(before, 1, blank - 1) == m.request then return m.earlier(before) end
  -- A stamp from the future comes from a clock that was wrong.
  local first = find(before, '\n', blank, true)
  local sent = sub(before, blank + 1, first - 1) + 0
  if ARGV[7] + 0 < sent and sent < m.raw + m.MINUTE then return {'stale', m.at} end
  local third = find(before, '\n', find(before, '\n', first + 1, true) + 1, true)
  local at, ends = third + 1, find(before, '\n', third + 1, true)
  while at < ends do -- id and token, each with a blank behind it
    blank = find(before, ' ', at, true)
    local next = find(before, ' ', blank + 1, true) or ends
    if next > ends then next = ends end
    m.held[sub(before, at, blank - 1)] = sub(before, blank + 1, next - 1)
    at = next + 1
  end
end

-- ended and fresh are short ways through the usual case; lua/shared/fast.lua has them. They return
-- false in every other case, and the versions here always do: without that file every result and
-- every grant takes the long way, to the same end.
function m.ended() return false end

function m.fresh() return false end

function m.results()
  local ids, from, i = {nil}, {nil}, 9
  for r = 1, ARGV[8] + 0 do
    ids[r], from[r] = ARGV[i], i
    i = i + (ARGV[i + 2] == 'ended' and 6 or 15)
  end
  local t = m.readJobs(ids)
  m.forgets = (m.zone.epoch or 0) + m.zone.longest -- takes before this instant may be forgotten
  if m.forgets >= m.now then m.readLocks(ids) end
  local held, seen = m.held, m.seen
  for r = 1, #ids do
    local id, i = ids[r], from[r]
    held[id] = nil
    seen[id] = true
    if ARGV[i + 2] ~= 'ended' then
      m.result(i)
    elseif not m.ended(i, id, t or m.tasks[sub(id, 1, 10)]) then
      m.result(m.spellOut(i))
    end
  end
end

-- Taking. -------------------------------------------------------------------

-- peek returns the due id at the front of a source. It reads page by page, with all facts about the
-- jobs of a page.
function m.peek(s)
  if s.at > #s.page then
    if s.dry then return nil end
    local first = s.offset == 0
    local page = call('ZRANGEBYSCORE', s.key, '-inf', m.at, 'LIMIT', first and '0' or m.us(s.offset),
      first and ARGV[4] or m.us(m.LOOKS))
    local n = #page
    s.page, s.offset, s.at, s.dry = page, s.offset + n, 1, n < (first and m.want or m.LOOKS)
    if n > 0 then
      if s.key == m.kAgain then m.readJobs(page) end
      s.hosts = n > 1 and m.readLocks(page) or m.NONE
    end
  end
  return s.page[s.at]
end

-- The two sources; take() resets both.
m.fromAgain, m.fromQueue = {page = false, hosts = false, at = 1, offset = 0, dry = false, key = ''},
  {page = false, hosts = false, at = 1, offset = 0, dry = false, key = ''}

function m.source(s, key)
  s.key, s.page, s.at, s.offset, s.dry = key, m.NONE, 1, 0, false
  return s
end

-- again returns when the running jobs of a task are due if no worker reports.
function m.again(t)
  if not t.again then t.again = m.us(m.now + t.timeout + m.lockDelay(t.timeout)) end
  return t.again
end

function m.take()
  local again, queue = m.source(m.fromAgain, m.kAgain), m.source(m.fromQueue, m.kQueue)
  local turn, want, grants = m.zone.turn, m.want, m.grants
  while m.looks < want + m.LOOKS and #grants < want do
    local s, id = again, m.peek(again)
    if id then
      -- Started work first, but every fourth from the queue, so that neither
      -- a crowd of retries nor a backlog starves the other.
      turn = turn + 1
      local other = turn % 4 == 0 and m.peek(queue)
      if other then s, id = queue, other end
    else
      s, id = queue, m.peek(queue)
      if not id then break end
    end
    s.at = s.at + 1
    m.looks = m.looks + 1
    if not m.seen[id] then
      m.seen[id] = true
      if s ~= queue or not m.fresh(id, s.hosts[s.at - 1]) then m.consider(id, s.key) end
    end
  end
  if turn ~= m.zone.turn then m.zone.turn, m.zone.turned = turn % 4, true end
end

-- first returns when the next job is due, if that is before at.
function m.first(at)
  for _, key in ipairs({m.kQueue, m.kAgain, m.zone.asks and m.kAsks or nil}) do
    local first = call('ZRANGE', key, '0', '0', 'WITHSCORES')
    if first[2] and (at == '0' or tonumber(first[2]) < tonumber(at)) then
      at = m.us(tonumber(first[2]))
    end
  end
  return at
end

-- remember stores the answer for a repetition, and the jobs that the slot holds now.
function m.remember(status, at)
  local mine, list = '', nil
  for id, token in pairs(m.held) do
    local one = id .. ' ' .. token .. ' '
    if mine == '' then
      mine = one
    else -- joined once: Lua hashes each byte of each string that it makes
      list = list or {mine, nil}
      list[#list + 1] = one
    end
  end
  if list then mine = table.concat(list) end
  call('HSET', m.kHold .. m.node, m.slot, m.request .. ' ' .. ARGV[7] .. '\n' ..
    status .. ' ' .. at .. '\n' .. table.concat(m.late, ' ') .. '\n' .. mine .. '\n' ..
    table.concat(m.grants, '\n') .. (#m.grants > 0 and '\n' or ''))
end

function m.run()
  m.node, m.slot, m.request, m.want = ARGV[1], ARGV[2], ARGV[3], ARGV[4] + 0
  m.who = m.node .. '/' .. m.slot
  m.begin()
  local zone = m.zone
  if not zone.run then return {'absent', m.at} end

  m.held = {} -- what the slot holds: id to token
  local instead = m.slot ~= '' and m.before()
  if instead then return instead end

  -- Either Redis' clock jumped, or a process slept between the sending of this call and now. Only
  -- the caller can tell which, with another call.
  local skew = ARGV[5] ~= '' and m.raw - ARGV[5] or 0
  if skew > m.MINUTE or skew < -m.MINUTE then return {'skewed', m.at} end

  m.seen = {} -- ids that this call has dealt with
  m.late = m.NONE
  if ARGV[8] ~= '0' then m.results() end

  m.grants = {nil}         -- in the form of the answer …
  m.grantedTo = {nil, nil} -- … and the task and the host of each
  m.lastToken, m.tokenText, m.looks = zone.token, false, 0
  local status, at, more = 'next', '0', false
  if zone.shut then
    -- Nobody knows how long history takes: the caller asks again in a second.
    status, at = 'frozen', m.us(math.max(zone.frozen, zone.owed and m.now + 1000000 or 0))
  elseif zone.halted or zone.paused then
    status = 'halted'
    if m.slot == '' and m.want == 0 then at = m.watch() end
  elseif m.want > 0 then
    if zone.asks then
      m.takeWithAsks()
    else
      m.take()
    end
    more = m.looks >= m.want + m.LOOKS or m.woken
  elseif m.slot == '' then
    more = m.sweep()
  end
  if m.kept > 0 or m.planned() > 0 then m.keepZone() end
  m.flush(true)

  if #m.grants > 0 then
    status = 'jobs'
  elseif more then
    status = 'more'
  elseif status == 'next' then
    at = m.first(at)
  end
  if m.slot ~= '' then m.remember(status, at) end
  return m.reply(status, at)
end

-- keepZone plans what a call leaves in the zone for the next ones. turn and waits are rarely
-- changed.
function m.keepZone()
  local zone, waits = m.zone, m.zone.waits or '0'
  m.toZone = {'HSET', m.kZone, 'high', m.at, 'token', m.tokenText or m.us(m.lastToken), nil, nil}
  if zone.turned then
    m.toZone[7], m.toZone[8] = 'turn', m.us(zone.turn)
  end
  if waits ~= (zone.waited or '0') then
    local n = #m.toZone
    m.toZone[n + 1], m.toZone[n + 2] = 'waits', waits
  end
end
