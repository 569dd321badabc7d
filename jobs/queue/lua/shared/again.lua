-- again: the part of step for jobs that do not end yet, and its sweep. It stands behind exclude.lua
-- inside m.lazy.

-- ledger returns the ledger of a result, and the proof of the node that stands behind it.
function m.ledger(i)
  return string.match(ARGV[i + 14], '^([^~]*)~?(.*)$')
end

-- stopped returns the end of a job that its worker would continue later, if the job was cancelled
-- meanwhile.
function m.stopped(i, j, note)
  local saved = ARGV[i + 10] ~= '' and ARGV[i + 10] or j.saved
  local state = ARGV[i + 2] == 'verify' and 'verify' or ARGV[i + 2] == 'back' and j.was or j.state
  local step = ARGV[i + 2] == 'back' and j.step or tonumber(ARGV[i + 9])
  local o = m.cancelled({saved = saved, step = step, state = state}, note)
  o.spent = m.ledger(i)
  if ARGV[i + 12] == '1' then o.outcome, o.keep = 'unknown', true end
  return o
end

-- turn returns the place, in µs, of the next job of a task that was never begun and is deferred to
-- an instant. When a window opens for several tasks their jobs take turns, as jobs do that got a
-- time of their own when they were put (turns.go).
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
  return math.min(n * t.width, 999999) -- the seconds of openings differ
end

-- keepHost locks the host of a job until its appointment and the time of one attempt.
function m.keepHost(id, j, t, delay)
  local lock = m.locked(m.hostOf(id))
  if not lock or lock == j.token .. ' ' .. id then
    m.lock(id, j.token, m.raw + delay + t.timeout)
  end
end

-- rescore puts a job back for another attempt.
function m.rescore(i, id, j, t)
  local kind, delay = ARGV[i + 2], tonumber(ARGV[i + 7])
  local keep, release = ARGV[i + 12] == '1', ARGV[i + 11] == '1'
  if kind == 'wait' and
    call('HEXISTS', t.key, 'gate:' .. ARGV[i + 9] .. ':' .. m.hostOf(id)) == 1 then
    delay = 0 -- its gate was answered meanwhile
  end
  local at = m.now + delay
  -- A lost job that is released without a look may have run: it stays lost, and the next worker
  -- verifies it, as end.lua does it.
  local note = t.cancel or j.cancel
  if note and not (kind == 'back' and j.lost) then
    m.finish(id, j, m.stopped(i, j, note))
    return
  end
  if j.state == 'running' then m.count(t, 'running', -1) end

  if kind == 'back' and j.attempt <= 1 and j.later == 0 and j.step == 0 and j.saved == '' then
    -- Nothing was done: the job is as if it had not been taken. Its record is deleted before it is
    -- in queue again, and until then it says what is true. A job with an expiry of its own keeps
    -- its record.
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

  -- A job that is released untouched stays at its step: a master that releases it does not know the
  -- step.
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
    -- A job that has passed a step keeps an attempt: it began. A job that never did has not
    -- started, and must not count as running while it waits.
    if j.attempt > 1 or step == 0 then j.attempt = j.attempt - 1 end
    if j.attempt == 0 then j.started = false end
    if ARGV[i + 8] ~= '0' then -- else the opening is not known, and the job expires as before
      at = tonumber(ARGV[i + 8])
      if not j.started then at = at + m.turn(t, ARGV[i + 8]) end
      j.later = math.max(at - t.due, 0)
    end
  else -- back, of a job that had earlier attempts
    -- A host that the job had kept stays kept: it may be rebooting.
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
  local spent, proof = m.ledger(i)
  if spent ~= '' then j.spent = spent end
  m.keep(id, j)
  m.event(kind, id, '{"at":' .. m.us(at) ..
    (err ~= '' and ',"error":' .. cjson.encode(err) or '') ..
    (proof ~= '' and ',"proof":"' .. proof .. '"' or '') .. '}')
end

-- see shows people that a job is lost, in a call that may hand none out. The job stays due for the
-- next master; only if no worker took it for a minute it steps back, so that a sweep reaches the
-- jobs behind it.
function m.see(id, j)
  if j.state == 'running' then
    m.w('ZADD', m.kAgain, 'XX', m.at, id)
    m.miss(id, j)
  elseif m.num(call('ZSCORE', m.kAgain, id)) < m.now - m.MINUTE then
    m.w('ZADD', m.kAgain, 'XX', m.us(m.now + m.MINUTE), id)
  end
end

-- miss notes that no worker has a running job.
function m.miss(id, j)
  m.count(m.task(m.taskOf(id)), 'running', -1)
  j.state = 'lost'
  m.keep(id, j)
  m.event('lost', id, '{"node":"' .. j.node .. '","why":"not heard of again"}')
end

-- watch is the sweep of a halted zone: it marks running jobs that are lost, and changes nothing
-- else, not even times and places. It reads a page of the due jobs, from a rank on, and returns the
-- rank for the next call, or 0 behind the last.
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

-- sweep processes the front of both sources without taking. It returns true if it changed all jobs
-- of a full page: there may be more to do.
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

-- replaceLive drops the preview of the attempt: its output has everything.
function m.replaceLive(id, token)
  local drop = {'XDEL', m.kOut .. id}
  for _, e in ipairs(call('XRANGE', m.kOut .. id, token, token)) do drop[#drop + 1] = e[1] end
  if #drop > 2 then m.plan[#m.plan + 1] = drop end
end
