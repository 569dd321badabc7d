-- epoch: the first call of every new connection. It tells whether Redis is the
-- one that the caller knew, and says again what the caller holds.
--
-- KEYS 1 zone
-- ARGV 1 run id of the server  2 epoch that the caller knows ('' = none)
--      3 who, "node/slot" of a child ('' for others)
--      4 longest lock that the caller knows, µs
--      5.. jobs in hand: id, token, µs until the lock ends, three each
-- Returns {epoch, frozen until, now, longest lock}
-- Keeps: after a restart, a failover or a loss of the zone nothing is taken
--      until every registered child has called, at the latest after the longest
--      lock. A new zone that nobody misses is open at once.

local run, knew, who = ARGV[1], ARGV[2], ARGV[3]

begin()
local registered = {}

local function open()
  local epoch = us(math.max(now, zone.token + 1))
  zone.longest = math.max(zone.longest, num(ARGV[4]))
  w('HSET', kZone, 'run', run, 'epoch', epoch, 'longest', us(zone.longest), 'high', us(now),
    'token', us(math.max(zone.token, now)))
  return epoch
end

if not zone.run then
  zone.epoch = open()
  w('HSET', kZone, 'born', zone.epoch)
  event('epoch', 'zone', '{"why":"new"}')
  if knew ~= '' then freeze('the zone was missing', true) end
else
  registered = children()
  if zone.run ~= run then
    -- Who was not heard of in the last epoch is not waited for in this one.
    for child, at in pairs(registered) do
      if at ~= zone.epoch then
        registered[child] = nil
        w('HDEL', kZone, 'n:' .. child)
      end
    end
    zone.epoch = open()
    freeze('Redis was started anew or replaced')
  elseif knew ~= '' and num(knew) < zone.born and registered[who] ~= zone.epoch then
    -- Somebody made a new zone before the caller could tell that one is missing.
    w('HSET', kZone, 'born', '0')
    freeze('the zone was missing', true)
  end
end

for i = 5, #ARGV, 3 do
  local id, token, left = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local t, j = task(taskOf(id)), job(id)
  local lock, value = locked(hostOf(id)), token .. ' ' .. id
  local forgot = j.state ~= 'ended' and num(j.token) < num(token)
  if t and (forgot or (j.token == token and j.state == 'running')) and (not lock or forgot) then
    w('SET', kLock(hostOf(id)), value, 'PX', us(math.max(math.ceil(left / 1000), 1)))
    if forgot then
      w('ZADD', kAgain, us(now + left + lockDelay(t.timeout)), id)
      w('ZREM', kQueue, id)
      w('HSET', kJob(id), 'state', 'running', 'token', token, 'attempt', us(j.attempt + 1),
        'node', who, 'due', us(j.due > 0 and j.due or t.due), 'started', j.started or us(now))
      if j.state ~= 'running' then count(t, 'running', 1) end
      event('reassert', id, '{"node":' .. cjson.encode(who) .. '}')
      w('HSET', kZone, 'token', us(math.max(zone.token, num(token))))
    end
  end
end

if who ~= '' then
  w('HSET', kZone, 'n:' .. who, zone.epoch)
  registered[who] = zone.epoch
end
thaw(registered, zone.epoch)
flush()
return {zone.epoch, us(zone.frozen), us(now), us(zone.longest)}
