-- control: the switches of a whole zone, its limits and its frozen groups.
--
-- KEYS 1 zone
-- ARGV 1 verb  2 object  3 who and why, for people  4 number
--      halt        object '', number = id of the order: a halt that was ordered before
--                  the last lift stays lifted, however late it comes
--      lift        object '', number = id of the order: it ends no halt that was
--                  ordered later
--      pause-zone, resume-zone: number = id of the order; with one, resume does
--                  nothing to a pause that was ordered later
--      pause-customer, resume-customer: object = customer, number as before
--      shift       object = task, number = when the pause began: its jobs expire
--                  later by the time that the pause lasted; once for each pause
--      limit       object = name, number = jobs at a time, '' = no limit
--      guard       object = task that has none, number = its guard: from now on its jobs
--                  need what their hosts' traits name
--      clear       object = group: ends its freeze. number = since when it is frozen, as the
--                  caller read it, '' or 0 = whenever: another freeze stays
--      thaw        ends a freeze before its time, and a wait for history. A caller that missed the zone
--                  in this epoch, or knows a longer lock, and reports later does not freeze it again
--      gate        object = job, number = its step, a gate; note = open, refuse or late,
--                  a blank, then who and why. The first answer counts, and makes a
--                  job that waits at the gate due at once
--      release     object = host, number = token of its lock, as the caller read it: the lock of
--                  a job which has ended, and which may still act on the host
--      drain, undrain: object = host; only an event: the hub has the drained hosts
--      quarantine, unquarantine: object = host
-- Returns {ok | already | absent | later (an order that was given after this one stands, with
--      its note: nothing was done), note or reason that stood before, number}
--      gate also: {elsewhere, state or outcome, step}: the job does not wait at this gate
--      release also: {other, job, token}: another lock; {busy, job and its state, token}
--      clear also: {other, why, since}: another freeze than the one the caller read
-- Keeps: repeating a call changes nothing. Jobs that wait for a freed resource are woken.
--
-- The hub has a halt with an id, and so has every zone; a lift has an id of its own. Each server
-- repeats the last of them for zones that did not answer or came later. So a halt that was ordered
-- before the last lift does nothing, however late it arrives, and a lift does not end a halt that
-- was ordered after it. The hub has pauses of zones, customers and tasks, and their ends, in the
-- same way.
--
-- A paused or halted zone answers every take with `halted`. Nothing begins or expires there. The
-- sweep still marks lost jobs, and hands none out. A paused task has a flag that takes obey at
-- once; then its jobs are moved to held:<task>. A take that finds a job of a paused customer puts
-- it aside there. A resume of a task whose commit Redis has forgotten returns the jobs that had
-- begun, and no others.
--
-- The server with the duty looks every five minutes for open tasks with a resume or a cancel that
-- was left half done in a zone, and completes it. The hub has no cancels: if the server dies before
-- it reached a zone, or a zone does not answer, the operator learns that and must cancel again.
-- Before a pause ends, the expiry of every task moves by the time that the pause lasted.

local verb, object, note, number = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local WAKES = 100 -- waiters woken in one call; the others try within a minute

m.begin()
if not m.zone.run then return {'absent', '', '0'} end
local verbs = {}

local function say(name, what)
  m.event(name, what, '{"note":' .. cjson.encode(note) .. '}')
end

-- off sets a flag of the zone. on removes it, unless an order later than upTo has set it. Each
-- returns the note that stood before. A flag that stands keeps its note, and takes the id of the
-- latest order.
local function off(field, event)
  local before = call('HGET', m.kZone, field)
  if before then
    if m.num(number) > m.num(call('HGET', m.kZone, field .. 'Id')) then
      m.w('HSET', m.kZone, field .. 'Id', number)
    end
    return {'already', before, call('HGET', m.kZone, field .. 'At') or '0'}
  end
  m.w('HSET', m.kZone, field .. 'At', m.at, field .. 'Id', m.us(m.num(number)), field, note)
  say(event, 'zone')
  return {'ok', '', m.at}
end

local function on(field, event, upTo)
  local before = call('HGET', m.kZone, field)
  if not before then return {'already', '', '0'} end
  if m.later(call('HGET', m.kZone, field .. 'Id'), upTo) then return {'later', before, '0'} end
  local since = call('HGET', m.kZone, field .. 'At') or '0'
  m.w('HDEL', m.kZone, field, field .. 'At', field .. 'Id')
  say(event, 'zone')
  m.w('PUBLISH', m.kWake, '')
  return {'ok', before, since}
end

verbs['pause-zone'] = function() return off('paused', verb) end
verbs['resume-zone'] = function() return on('paused', verb, number) end

function verbs.halt()
  if m.num(number) <= m.num(call('HGET', m.kZone, 'lifted')) then return {'later', '', '0'} end
  return off('halted', verb)
end

function verbs.lift()
  if m.num(number) > m.num(call('HGET', m.kZone, 'lifted')) then
    m.w('HSET', m.kZone, 'lifted', number)
  end
  return on('halted', verb, number)
end

local function customers() return m.zone.customers and cjson.decode(m.zone.customers) or {} end

verbs['pause-customer'] = function()
  local all = customers()
  if all[object] then
    local since, id, before = string.match(all[object], '^(%d+) (%d+) (.*)$')
    if m.num(number) > m.num(id) then
      all[object] = since .. ' ' .. number .. ' ' .. before
      m.w('HSET', m.kZone, 'customers', cjson.encode(all))
    end
    return {'already', before, '0'}
  end
  all[object] = m.at .. ' ' .. m.us(m.num(number)) .. ' ' .. note
  m.w('HSET', m.kZone, 'customers', cjson.encode(all))
  say(verb, object)
  return {'ok', '', m.at}
end

verbs['resume-customer'] = function()
  local all = customers()
  local since, id, before = string.match(all[object] or '', '^(%d+) (%d+) (.*)$')
  if not since then return {'already', '', '0'} end
  if m.later(id, number) then return {'later', before, '0'} end
  all[object] = nil
  if next(all) then
    m.w('HSET', m.kZone, 'customers', cjson.encode(all))
  else
    m.w('HDEL', m.kZone, 'customers')
  end
  say(verb, object)
  return {'ok', before, since}
end

function verbs.shift()
  local t = m.task(object)
  if not t then return {'absent', '', '0'} end
  local v = call('HMGET', m.kTask .. object, 'shifted', 'committed')
  if v[1] == number or not v[2] or t.done >= t.total then return {'already', '', '0'} end
  local lasted = math.max(m.now - math.max(m.num(number), m.num(v[2])), 0)
  m.w('HSET', m.kTask .. object, 'shifted', number, 'expires', m.us(t.expires + lasted))
  return {'ok', '', m.us(lasted)}
end

local function wake(name)
  for _ = 1, WAKES do
    if not m.wakeNext(name) then return end
  end
end

function verbs.limit()
  local before = call('HGET', m.kLimits, object) or ''
  if before == number then return {'already', before, '0'} end
  m.w(unpack(number == '' and {'HDEL', m.kLimits, object} or {'HSET', m.kLimits, object, number}))
  m.event('limit', object, '{"max":' .. (number == '' and 'null' or number) .. '}')
  m.sem(object).max = tonumber(number) or math.huge
  wake(object)
  return {'ok', before, '0'}
end

function verbs.guard()
  local t = m.task(object)
  if not t then return {'absent', '', '0'} end
  if t.guard then return {'already', '', '0'} end
  m.w('HSET', t.key, 'guard', number)
  return {'ok', '', '0'}
end

function verbs.clear()
  local key = m.kSem .. 'group/' .. object
  local why = call('HGET', key, m.FROZEN)
  if not why then return {'already', '', '0'} end
  local since = string.match(why, '^%S+ (%d+)') or '0'
  if m.num(number) ~= 0 and number ~= since then return {'other', why, since} end
  m.drop(m.FROZEN, 'group/' .. object)
  say('clear', object)
  wake('group/' .. object)
  return {'ok', why, '0'}
end

function verbs.thaw()
  if not m.zone.shut then return {'already', '', '0'} end
  local why = call('HGET', m.kZone, 'why') or ''
  m.w('HDEL', m.kZone, 'owed')
  m.w('HSET', m.kZone, 'frozen', '0', 'strict', '0', 'born', '0')
  say('thaw', 'zone')
  m.w('PUBLISH', m.kWake, '')
  return {'ok', why, m.us(m.zone.frozen)}
end

-- If a worker has the job and will soon report that it waits, step finds the answer.
function verbs.gate()
  local t, j = m.task(m.taskOf(object)), m.job(object)
  if not t or not j.state then return {'absent', '', '0'} end
  local field = 'gate:' .. number .. ':' .. m.hostOf(object)
  local before = call('HGET', t.key, field)
  local there = j.state ~= 'ended' and j.attempt > 0 and m.us(j.step) == number
  if not before then
    if not there then return {'elsewhere', j.outcome or j.state, m.us(j.step)} end
    m.w('HSET', t.key, field, m.at .. ' ' .. note)
    m.event('gate', object, '{"step":' .. number .. ',"note":' .. cjson.encode(note) .. '}')
  end
  if there and j.state == 'wait' and j.due > m.now then
    m.w('ZADD', m.kAgain, 'XX', m.at, object)
    j.due = m.now
    m.keep(object, j)
    m.w('PUBLISH', m.kWake, '')
  end
  return {before and 'already' or 'ok', before or '', '0'}
end

function verbs.release()
  local token, id = string.match(m.locked(object) or '', '^(%S+) (.*)$')
  if not id then return {'already', '', '0'} end
  if token ~= number then return {'other', id, token} end
  -- Nobody can ask about a task that Redis has forgotten, and no other order reaches it.
  local state = m.task(m.taskOf(id)) and (m.job(id).state or 'queued') or 'ended'
  if state ~= 'ended' then return {'busy', id .. ' ' .. state, token} end
  m.toFree[#m.toFree + 1] = object
  m.locks[object] = false
  if m.zone.waits then m.wakeFor(object) end
  say(verb, object)
  return {'ok', id, token}
end

function verbs.quarantine()
  local before = call('HGET', m.kQuarantined, object)
  if before then return {'already', before, '0'} end
  m.setAside(object, '- ' .. m.line(note))
  say(verb, object)
  return {'ok', '', '0'}
end

function verbs.unquarantine()
  local before = call('HGET', m.kQuarantined, object)
  if not before then return {'already', '', '0'} end
  m.setAside(object, false)
  if m.zone.waits then m.wakeFor(object) end
  say(verb, object)
  return {'ok', before, '0'}
end

local function tell()
  say(verb, object)
  return {'ok', '', '0'}
end
verbs.drain, verbs.undrain = tell, tell

local answer = verbs[verb]()
m.flush()
return answer
