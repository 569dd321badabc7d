-- again: what step does with a job that does not end yet, and its sweep. Stands
-- behind exclude.lua inside m.lazy.

-- stopped is how a job ends whose worker would go on with it later, when it was
-- cancelled meanwhile.
function m.stopped(i, j, note)
  local saved = ARGV[i + 10] ~= '' and ARGV[i + 10] or j.saved
  local state = ARGV[i + 2] == 'verify' and 'verify' or j.state
  local step = ARGV[i + 2] == 'back' and j.step or tonumber(ARGV[i + 9])
  local o = m.cancelled({saved = saved, step = step, state = state}, note)
  if ARGV[i + 12] == '1' then o.outcome, o.keep = 'unknown', true end
  return o
end

-- rescore keeps a job for another attempt.
function m.rescore(i, id, j, t)
  local kind, delay = ARGV[i + 2], tonumber(ARGV[i + 7])
  local keep, release = ARGV[i + 12] == '1', ARGV[i + 11] == '1'
  local at = m.now + delay
  local set = {'HSET', m.kJob .. id}
  local function put(field, value)
    set[#set + 1] = field
    set[#set + 1] = value
  end
  -- What is given back untouched is where it was: a master that gives it back
  -- does not know where that is.
  if kind ~= 'back' then put('step', ARGV[i + 9]) end
  if ARGV[i + 10] ~= '' then put('saved', ARGV[i + 10]) end
  local note = t.cancel or j.cancel
  if note then
    m.finish(id, j, m.stopped(i, j, note))
    return
  end
  if j.state == 'running' then m.count(t, 'running', -1) end

  if kind == 'back' and j.attempt <= 1 then
    -- Nothing was done: as if it had not been taken.
    m.w('ZADD', m.kQueue, m.us(j.due), id)
    m.wAfter('DEL', m.kJob .. id)
    m.toDrop[#m.toDrop + 1] = id
    if t.guard then m.release(id, t) end
    m.unlock(id, j, t)
    m.event('back', id)
    return
  end

  if kind == 'retry' then
    put('state', 'retry')
    put('tries', m.us(j.tries + 1))
    if keep and m.locked(m.hostOf(id)) == j.token .. ' ' .. id then
      at = math.max(at, m.now + m.lockTTL(m.hostOf(id)) + 1000)
    end
  elseif kind == 'wait' or kind == 'verify' then
    put('state', kind)
    if kind == 'verify' then put('probes', m.us(j.probes + 1)) end
    if kind == 'verify' or not release then
      keep = true
      local lock, value = m.locked(m.hostOf(id)), j.token .. ' ' .. id
      if not lock or lock == value then
        local ms = math.ceil((delay + t.timeout) / 1000)
        m.w('SET', m.kLock .. m.hostOf(id), value, 'PX', m.us(ms))
        m.locks[m.hostOf(id)] = value
      end
    end
  elseif kind == 'defer' then
    at = tonumber(ARGV[i + 8])
    put('state', 'deferred')
    put('attempt', m.us(j.attempt - 1))
    put('expires', m.us(at + t.expires - t.due))
  else -- back, of a job that had earlier attempts
    put('state', j.lost and 'lost' or 'retry')
    put('attempt', m.us(j.attempt - 1))
    at, keep = m.now, j.lost
  end
  put('due', m.us(at))
  m.w('ZADD', m.kAgain, m.us(at), id)
  m.plan[#m.plan + 1] = set
  if not keep then
    local step = kind == 'back' and j.step or tonumber(ARGV[i + 9])
    local begun = not release and (step > 0 or ARGV[i + 10] ~= '' or j.saved ~= '')
    if t.guard then m.release(id, t, begun) end
    m.unlock(id, j, t)
  end
  local err = ARGV[i + 6]
  m.event(kind, id, '{"at":' .. m.us(at) ..
    (err ~= '' and ',"error":' .. cjson.encode(err) or '') .. '}')
end

-- see recognises a lost job for people where nobody may take it. It stays due,
-- for the next master; only one that nobody took for a minute steps back, so that
-- a sweep sees those behind it.
function m.see(id, j)
  if j.state == 'running' then
    m.count(m.task(m.taskOf(id)), 'running', -1)
    m.w('HSET', m.kJob .. id, 'state', 'lost')
    m.w('ZADD', m.kAgain, 'XX', m.at, id)
    m.event('lost', id, '{"node":"' .. j.node .. '","why":"not heard of again"}')
  elseif m.num(call('ZSCORE', m.kAgain, id)) < m.now - m.MINUTE then
    m.w('ZADD', m.kAgain, 'XX', m.us(m.now + m.MINUTE), id)
  end
end

-- sweep looks at the front of both sources without taking. It is true if it
-- changed all that it looked at, of a full page: there may be more to do.
function m.sweep()
  local more = false
  for _, key in ipairs({m.kAgain, m.kQueue}) do
    local ids = call('ZRANGEBYSCORE', key, '-inf', m.at, 'LIMIT', '0', m.us(m.LOOKS))
    local changed = 0
    for _, id in ipairs(ids) do
      local before = m.planned()
      m.consider(id, key)
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
