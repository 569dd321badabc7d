-- again: what step does with a job that does not end yet, and its sweep. Stands
-- behind exclude.lua inside m.lazy.

-- stopped is how a job ends whose worker would go on with it later, when it was
-- cancelled meanwhile.
function m.stopped(i, j, note)
  local saved = ARGV[i + 10] ~= '' and ARGV[i + 10] or j.saved
  local state = ARGV[i + 2] == 'verify' and 'verify' or ARGV[i + 2] == 'back' and j.was or j.state
  local step = ARGV[i + 2] == 'back' and j.step or tonumber(ARGV[i + 9])
  local o = m.cancelled({saved = saved, step = step, state = state}, note)
  o.spent = ARGV[i + 14]
  if ARGV[i + 12] == '1' then o.outcome, o.keep = 'unknown', true end
  return o
end

-- turn is the place, in µs, of the next job of a task that was never begun and is deferred
-- to an instant. Where a window opens for several tasks their jobs come in turns, as those
-- that got a time of their own when they were put (turns.go).
function m.turn(t, at)
  local field = 'turn:' .. at
  t.turns = t.turns or {}
  local n = t.turns[field]
  if not n then
    local v = call('HMGET', t.key, field, 'priority')
    n = m.num(v[1])
    t.width = v[2] == 'high' and 1 or v[2] == 'low' and 4 or 2
  end
  t.turns[field] = n + 1
  m.w('HSET', t.key, field, m.us(n + 1))
  return math.min(n * t.width, 999999) -- openings are told apart by their second
end

-- keepHost locks the host of a job up to its appointment and an attempt more.
function m.keepHost(id, j, t, delay)
  local lock = m.locked(m.hostOf(id))
  if not lock or lock == j.token .. ' ' .. id then
    m.lock(id, j.token, m.raw + delay + t.timeout)
  end
end

-- rescore keeps a job for another attempt.
function m.rescore(i, id, j, t)
  local kind, delay = ARGV[i + 2], tonumber(ARGV[i + 7])
  local keep, release = ARGV[i + 12] == '1', ARGV[i + 11] == '1'
  if kind == 'wait' and
    call('HEXISTS', t.key, 'gate:' .. ARGV[i + 9] .. ':' .. m.hostOf(id)) == 1 then
    delay = 0 -- it stands at a gate that was answered meanwhile
  end
  local at = m.now + delay
  -- What is lost and given back without a look may have run: it stays lost, and whoever has it
  -- next finds out, as end.lua has it.
  local note = t.cancel or j.cancel
  if note and not (kind == 'back' and j.lost) then
    m.finish(id, j, m.stopped(i, j, note))
    return
  end
  if j.state == 'running' then m.count(t, 'running', -1) end

  if kind == 'back' and j.attempt <= 1 and j.later == 0 and j.step == 0 and j.saved == '' then
    -- Nothing was done: as if it had not been taken. What is kept of it goes before it
    -- is in queue again, and until then says what is true. One that expires by itself
    -- keeps its record.
    if t.guard then m.release(id, t, false, true) end
    m.unlock(id, j, t)
    j.state, j.attempt = 'retry', 0
    m.keep(id, j)
    m.wAfter('HDEL', t.key, sub(id, 11))
    m.wAfter('ZADD', m.kQueue, m.us(j.due), id)
    m.toDrop[#m.toDrop + 1] = id
    m.event('back', id)
    return
  end

  -- What is given back untouched is where it was: a master that gives it back
  -- does not know where that is.
  local state, saved = kind, ARGV[i + 10] ~= '' and ARGV[i + 10] or j.saved
  local step = kind == 'back' and j.step or tonumber(ARGV[i + 9])
  if kind == 'retry' then
    j.tries = j.tries + 1
    if keep and m.locked(m.hostOf(id)) == j.token .. ' ' .. id then
      at = math.max(at, m.now + m.lockLeft(m.hostOf(id)) + 1000)
    end
  elseif kind == 'wait' or kind == 'verify' then
    if kind == 'verify' then j.probes = j.probes + 1 end
    if kind == 'verify' or not release then
      keep = true
      m.keepHost(id, j, t, delay)
    end
  elseif kind == 'defer' then
    state = 'deferred'
    -- What has gone through a step keeps an attempt: it began. What never did did not
    -- start, and is not to count as at work while it waits.
    if j.attempt > 1 or step == 0 then j.attempt = j.attempt - 1 end
    if j.attempt == 0 then j.started = false end
    if ARGV[i + 8] ~= '0' then -- else nobody knows when it may, and it expires as before
      at = tonumber(ARGV[i + 8])
      if not j.started then at = at + m.turn(t, ARGV[i + 8]) end
      j.later = math.max(at - t.due, 0)
    end
  else -- back, of a job that had earlier attempts
    -- A host that it had kept is kept: it may be rebooting.
    at, state, keep = m.now, j.lost and 'lost' or j.was or 'retry', j.lost or j.was
    j.attempt = j.attempt - 1
    if j.was then m.keepHost(id, j, t, 0) end
  end
  m.w('ZADD', m.kAgain, m.us(at), id)
  if not keep then
    local begun = not release and (step > 0 or saved ~= '')
    local asks = kind == 'defer' and not begun or kind == 'back' and j.attempt == 0
    if t.guard then m.release(id, t, begun, asks) end
    m.unlock(id, j, t)
  end
  local err = ARGV[i + 6]
  j.state, j.was, j.step, j.saved, j.due = state, false, step, saved, at
  j.why = kind ~= 'back' and err or ''
  if ARGV[i + 14] ~= '' then j.spent = ARGV[i + 14] end
  m.keep(id, j)
  m.event(kind, id, '{"at":' .. m.us(at) ..
    (err ~= '' and ',"error":' .. cjson.encode(err) or '') .. '}')
end

-- see recognises a lost job for people where nobody may take it. It stays due,
-- for the next master; only one that nobody took for a minute steps back, so that
-- a sweep sees those behind it.
function m.see(id, j)
  if j.state == 'running' then
    m.w('ZADD', m.kAgain, 'XX', m.at, id)
    m.miss(id, j)
  elseif m.num(call('ZSCORE', m.kAgain, id)) < m.now - m.MINUTE then
    m.w('ZADD', m.kAgain, 'XX', m.us(m.now + m.MINUTE), id)
  end
end

-- miss notes that nobody works on a job that runs.
function m.miss(id, j)
  m.count(m.task(m.taskOf(id)), 'running', -1)
  j.state = 'lost'
  m.keep(id, j)
  m.event('lost', id, '{"node":"' .. j.node .. '","why":"not heard of again"}')
end

-- watch is the sweep of a zone that stands still: it tells which running jobs are lost, and
-- leaves all else as it is, times and places too. It looks at a page of what is due, from a
-- rank on, and returns the rank for the next call, or 0 behind the last.
m.WATCHES = 100
function m.watch()
  local from = m.num(m.request)
  local ids = call('ZRANGEBYSCORE', m.kAgain, '-inf', m.at, 'LIMIT', m.us(from), m.us(m.WATCHES))
  m.readJobs(ids)
  m.readLocks(ids)
  for _, id in ipairs(ids) do
    local t, j = m.task(m.taskOf(id)), m.job(id)
    if t and j.state == 'running' and m.locked(m.hostOf(id)) ~= j.token .. ' ' .. id then
      m.miss(id, j)
    end
  end
  return #ids < m.WATCHES and '0' or m.us(from + #ids)
end

-- sweep looks at the front of both sources without taking. It is true if it
-- changed all that it looked at, of a full page: there may be more to do.
function m.sweep()
  local more = false
  for _, key in ipairs({m.kAgain, m.kQueue}) do
    local ids = call('ZRANGEBYSCORE', key, '-inf', m.at, 'LIMIT', '0', m.us(m.LOOKS))
    local changed = 0
    m.readJobs(ids)
    m.readLocks(ids)
    for _, id in ipairs(ids) do
      local before = m.planned()
      if not m.seen[id] then
        m.seen[id] = true
        m.consider(id, key)
      end
      if m.planned() > before then changed = changed + 1 end
    end
    more = more or changed == m.LOOKS
  end
  return more
end

-- replaceLive drops what was heard while the attempt ran: its output has it all.
function m.replaceLive(id, token)
  local drop = {'XDEL', m.kOut .. id}
  for _, e in ipairs(call('XRANGE', m.kOut .. id, token, token)) do drop[#drop + 1] = e[1] end
  if #drop > 2 then m.plan[#m.plan + 1] = drop end
end
