-- freeze: shared by the scripts that may freeze or thaw a zone. It stands behind the prelude of
-- put, lose and epoch only, because making a function costs time at every call.

-- beginZone reads the whole zone, for the scripts that change it.
function m.beginZone()
  m.begin()
  local v = call('HMGET', m.kZone, 'born', 'strict', 'soonest', 'jumped', 'recorded')
  m.zone.born, m.zone.strict, m.zone.soonest = m.num(v[1]), v[2] == '1', m.num(v[3])
  m.zone.jumped, m.zone.recorded = m.num(v[4]), v[5]
end

-- thaw ends a freeze once every registered child has called epoch since its beginning.
function m.thaw(registered, epoch)
  if m.zone.frozen <= math.max(m.now, m.zone.soonest) or m.zone.strict then return end
  for _, at in pairs(registered) do
    if at ~= epoch then return end
  end
  -- A child that was forgotten with the last moments before a restart needs time to report.
  m.zone.frozen = math.min(m.zone.frozen, math.max(m.zone.soonest, m.now))
  m.w('HSET', m.kZone, 'frozen', m.us(m.zone.frozen))
  m.event('thaw', 'zone', '{"at":' .. m.us(m.zone.frozen) .. '}')
  m.w('PUBLISH', m.kWake, '')
end

-- children returns the registered children of the zone: "node/slot" to the epoch in which each last
-- reported what it holds.
function m.children()
  local out, v = {}, call('HGETALL', m.kZone)
  for i = 1, #v, 2 do
    if string.sub(v[i], 1, 2) == 'n:' then out[string.sub(v[i], 3)] = v[i + 1] end
  end
  return out
end

-- frozen writes the freeze in m.zone.
function m.frozen(why)
  m.w('HSET', m.kZone, 'frozen', m.us(m.zone.frozen), 'why', why,
    'strict', m.zone.strict and '1' or '0', 'soonest', m.us(m.zone.soonest))
  m.event('freeze', 'zone', '{"why":' .. cjson.encode(why) .. ',"until":' ..
    m.us(m.zone.frozen) .. '}')
end

-- freeze lets nothing be taken before the longest lock has ended or, unless it is strict, before
-- every registered child has reported what it holds. It is strict if nobody can know which children
-- were registered.
function m.freeze(why, strict)
  m.zone.strict = strict or (m.zone.frozen > m.now and m.zone.strict)
  m.zone.frozen = math.max(m.zone.frozen, m.now + math.max(m.zone.longest, 10000000))
  m.zone.soonest = m.now + math.min(m.zone.longest, 10000000)
  m.frozen(why)
end

-- freezeFor lets nothing be taken for so long, whatever children report. A present freeze stays,
-- unless its end is further away than any freeze can last: then a wrong clock has set it.
function m.freezeFor(wait, why)
  local on = math.min(m.zone.frozen, m.now + math.max(m.zone.longest, 10000000))
  m.zone.strict = true
  m.zone.frozen = math.max(on, m.now + wait)
  m.zone.soonest = math.min(m.zone.soonest, m.now)
  m.frozen(why)
end
