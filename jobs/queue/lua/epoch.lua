-- epoch: the first call of every new connection. It shows whether Redis is the one that the caller
-- knew, and reports again which jobs the caller holds.
--
-- KEYS 1 zone
-- ARGV 1 run id of the server  2 epoch that the caller knows ('' = none)
--      3 who, "node/slot" of a child ('' for others)
--      4 longest lock that the caller knows, µs
--      5 by how much TIME has jumped since the caller saw it last, µs ('' = it has not)
--      6 when that was, µs, by the clock as it is now
--      7 when the caller sent this, by its estimate of TIME, µs (0 = it has none)
--      8.. jobs in hand: id, token, µs until the lock ends, three each
-- Returns {epoch, frozen until, now, longest lock}
-- Keeps: after a restart, a failover or a loss of the zone nothing is taken until every
--      registered child has called, at the latest after the longest lock that any caller
--      until then knows; in a zone with a history not before history was asked either
--      (recall.lua). A new zone that nobody misses is open at once. After a jump of TIME
--      nothing is taken for as long as it jumped, at most for the longest lock,
--      however many callers report it.
--
-- If the run id is not the one of the zone, Redis was restarted or replaced. Then the zone is
-- frozen until each registered child has called epoch and reported again which jobs it holds, or
-- was reported as lost. The call then restores the forgotten parts of running jobs; if Redis forgot
-- the whole task, the host of the job stays locked. Nothing is taken in the first 10 s in any case,
-- because Redis may have forgotten that a child was registered; a child with jobs in hand reports
-- itself every 3 s.
--
-- A zone that is missing altogether (FLUSHALL) is frozen for the longest lock by the first caller
-- that knew it. A later caller that knows another epoch and a longer lock makes the freeze longer.
-- When a person has thawed a zone, only another restart, loss or jump of TIME freezes it again; a
-- child that reports the same one late does not.

local run, knew, who = ARGV[1], ARGV[2], ARGV[3]

m.beginZone()
local registered = {}

-- open begins an epoch. It differs from all epochs before, even while TIME is behind.
function m.open()
  m.zone.token = math.max(m.now, m.zone.token + 1, m.num(m.zone.epoch) + 1, m.num(knew) + 1)
  local epoch = m.us(m.zone.token)
  m.zone.longest = math.max(m.zone.longest, m.num(ARGV[4]))
  m.w('HSET', m.kZone, 'run', run, 'epoch', epoch, 'longest', m.us(m.zone.longest),
    'high', m.at, 'token', epoch)
  -- A zone that Redis has lost alone must not forget that takes have to look.
  if call('EXISTS', m.kQuarantined) == 1 then m.w('HSET', m.kZone, 'quarantine', '1') end
  return epoch
end

if not m.zone.run then
  m.zone.epoch = m.open()
  m.w('HSET', m.kZone, 'born', m.zone.epoch, 'form', m.LEAST)
  m.event('epoch', 'zone', '{"why":"new"}')
  if knew ~= '' then m.freeze('the zone was missing', true) end
else
  registered = m.children()
  if m.zone.run ~= run then
    -- A child that did not call in the last epoch is not waited for in this one.
    for child, at in pairs(registered) do
      if at ~= m.zone.epoch then
        registered[child] = nil
        m.w('HDEL', m.kZone, 'n:' .. child)
      end
    end
    m.zone.epoch = m.open()
    local why = 'Redis was started anew or replaced'
    m.freeze(why)
    if m.zone.recorded then m.w('HSET', m.kZone, 'owed', m.at .. ' ' .. why) end
  elseif knew ~= '' and m.num(knew) < m.zone.born and registered[who] ~= m.zone.epoch then
    -- Another caller made a new zone before this caller could notice that the old one is missing.
    m.w('HSET', m.kZone, 'born', '0')
    m.freeze('the zone was missing', true)
  end
end

-- A caller that knows a longer lock than a forgotten zone makes its freeze longer.
if m.num(ARGV[4]) > m.zone.longest then
  m.zone.longest = m.num(ARGV[4])
  m.w('HSET', m.kZone, 'longest', ARGV[4])
  if m.zone.frozen > m.now then
    m.zone.frozen = math.max(m.zone.frozen, m.now + m.zone.longest)
    m.w('HSET', m.kZone, 'frozen', m.us(m.zone.frozen))
  end
end

-- Locks may have ended at once, by as much as TIME jumped. A jump that was noted after the caller
-- last saw the clock is the same one.
local jump, since = m.num(ARGV[5]), m.num(ARGV[6])
if jump ~= 0 and (m.zone.jumped < since or m.zone.jumped > m.raw) then
  local wait = math.max(math.min(m.zone.longest, math.abs(jump)), 10000000)
  m.freezeFor(wait, 'TIME jumped by ' .. m.us(math.floor(jump / 1000000)) .. ' s')
  m.w('HSET', m.kZone, 'jumped', m.us(m.raw), 'high', m.at)
end

local function used(token)
  m.zone.token = math.max(m.zone.token, m.num(token))
  m.w('HSET', m.kZone, 'token', m.us(m.zone.token))
end

-- late reports whether a child that has called in this epoch made a later call since. Then the
-- network delayed this one, and the child may have given back meanwhile what was given to it in this
-- epoch: in an epoch nothing is forgotten. The first report in an epoch is never late, whatever its
-- stamp: a forgotten token can be greater than the epoch, if TIME was ahead when it was given.
local function late()
  if registered[who] ~= m.zone.epoch then return false end
  local node, slot = string.match(who, '^(.*)/([^/]*)$')
  local before = node and m.num(ARGV[7]) ~= 0 and call('HGET', m.kHold .. node, slot)
  if not before then return false end
  local sent = m.num(string.match(before, ' (%d+)'))
  -- A stamp from the future comes from a clock that was wrong.
  return m.num(ARGV[7]) < sent and sent < m.raw + m.MINUTE
end

local delayed = late()
for i = 8, #ARGV, 3 do
  local id, token, left = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local t, j = m.task(m.taskOf(id)), m.job(id)
  local lock = m.locked(m.hostOf(id))
  -- A caller that knows this epoch lost nothing in it: a job that is missing has ended.
  local forgot = knew ~= m.zone.epoch and j.state ~= 'ended' and m.num(j.token) < m.num(token)
    and not (delayed and m.num(token) > m.num(m.zone.epoch))
  -- Redis may have forgotten that the child's last step made its lock longer.
  local short = j.token == token and lock == token .. ' ' .. id and knew ~= m.zone.epoch
    and not delayed and (m.untils[m.hostOf(id)] or 0) < m.raw + left
  if not t and forgot and (not lock or m.num(string.match(lock, '^%d+')) < m.num(token)) then
    -- Redis forgot its whole task, but a worker is at work on the host.
    m.lock(id, token, m.raw + math.max(left, 1))
    used(token)
  end
  if t and (forgot or (j.token == token and j.state == 'running'))
    and (not lock or forgot or short) then
    m.lock(id, token, m.raw + math.max(left, 1))
    if forgot then
      m.w('ZADD', m.kAgain, m.us(m.now + left + m.lockDelay(t.timeout)), id)
      m.w('ZREM', m.kQueue, id)
      m.w('ZREM', m.kHeld .. m.taskOf(id), id)
      if j.state ~= 'running' then
        m.count(t, 'running', 1)
        j.was = m.was(j, false)
      end
      j.state, j.live, j.token = 'running', false, token
      j.attempt, j.node = j.attempt + 1, who
      j.due, j.started = j.due > 0 and j.due or t.due, j.started or m.at
      m.keep(id, j)
      if not t.started then
        t.started = m.at
        m.w('HSET', m.kTask .. m.taskOf(id), 'started', t.started)
      end
      if t.guard then
        m.acquire(id, m.needs(id, t), token)
        m.doubt(id, m.needs(id, t))
      end
      m.event('reassert', id, '{"node":' .. cjson.encode(who) .. '}')
      used(token)
    end
  end
end

if who ~= '' then
  m.w('HSET', m.kZone, 'n:' .. who, m.zone.epoch)
  registered[who] = m.zone.epoch
end
m.thaw(registered, m.zone.epoch)
m.flush(true)
return {m.zone.epoch, m.us(m.zone.frozen), m.at, m.us(m.zone.longest)}
