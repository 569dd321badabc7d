-- freeze: what the scripts share that may freeze or thaw a zone. It stands behind
-- the prelude of put, lose and epoch only, because making a function costs time at
-- every call.

-- beginZone reads all of the zone, for the scripts that change it.
function m.beginZone()
  m.begin()
  local v = call('HMGET', m.kZone, 'epoch', 'longest', 'born', 'strict')
  m.zone.epoch, m.zone.longest, m.zone.born = v[1], m.num(v[2]), m.num(v[3])
  m.zone.strict = v[4] == '1'
end

-- thaw ends a freeze once every registered child has called epoch since.
function m.thaw(registered, epoch)
  if m.zone.frozen <= m.now or m.zone.strict then return end
  for _, at in pairs(registered) do
    if at ~= epoch then return end
  end
  m.zone.frozen = 0
  m.w('HSET', m.kZone, 'frozen', '0')
  m.event('thaw', 'zone')
  m.w('PUBLISH', m.kWake, '')
end

-- children are the registered children of the zone: "node/slot" to the epoch
-- that each last said what it holds in.
function m.children()
  local out, v = {}, call('HGETALL', m.kZone)
  for i = 1, #v, 2 do
    if string.sub(v[i], 1, 2) == 'n:' then out[string.sub(v[i], 3)] = v[i + 1] end
  end
  return out
end

-- freeze lets nothing be taken before the longest lock has ended or, unless it
-- is strict, before every child that was registered has said what it holds. It
-- is strict where nobody can know who was registered.
function m.freeze(why, strict)
  m.zone.frozen, m.zone.strict = m.now + math.max(m.zone.longest, 10000000), strict
  m.w('HSET', m.kZone, 'frozen', m.us(m.zone.frozen), 'why', why, 'strict', strict and '1' or '0')
  m.event('freeze', 'zone', '{"why":' .. cjson.encode(why) .. ',"until":' ..
    m.us(m.zone.frozen) .. '}')
end
