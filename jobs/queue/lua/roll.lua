-- roll: the orders of people, and of a server's duty, about a task with a rule.
--
-- KEYS 1 zone
-- ARGV 1 task  2 verb  3 who and why, for people  4 number  5 text
--      stop    no further job begins; jobs that have begun run to their end
--      go      the task continues after a stop, or opens the wave that waits for a
--              person; number = jobs that may fail in all from now on, '' = as before
--      look    notes since when the jobs of the open waves have all ended
--      open    number = the wave to open, the one behind the last open wave
--      check   number = the last open wave, text = the task that checks its hosts
-- Returns {ok | already | early | spent | absent | ended, text, number}
--      go: spent if more have failed than may, number = how many have; text of a stop
--      that ended. look: number = since when, text = number of jobs that are put aside for
--      no reason; early: they have not ended. check: text = the task that checks.
-- Keeps: repeating a call changes nothing. A wave is opened once, when all jobs of the
--      waves before it have ended, and never while the task is stopped or paused.
--
-- Jobs of a wave that is not open are in held:<task>. Their score is the number of their wave, at
-- most 1000; a job that was in the queue before and was put aside has an instant as its score. The
-- field `wave` is the last open wave. This script compares and sets it, and itself checks whether
-- all jobs of the earlier waves have ended. `rolling` lists the tasks that a server has to look at.

local id, verb, note, number, text = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local WAKES = 100 -- waiters woken in one call; the others try within a minute

m.begin()
local t = m.zone.run and m.task(id)
local r = t and m.rule(id, t)
if not r or t.done >= t.total then
  if m.zone.run then
    m.w('SREM', m.kRolling, id)
    m.flush()
  end
  return {r and 'ended' or 'absent', '', '0'}
end
local field = {}
local names = {'committed', 'stoppedNote', 'waves', 'over', 'pass', 'checks'}
for i, v in ipairs(call('HMGET', t.key, unpack(names))) do field[names[i]] = v end

local function set(...) m.w('HSET', t.key, ...) end

local verbs = {}

function verbs.stop()
  if r.stopped then return {'already', field.stoppedNote, r.stopped} end
  m.stopTask(id, t, r, note)
  return {'ok', '', m.at}
end

function verbs.go()
  local allowed = tonumber(number) or r.allowed
  local waits = field.over and not field.pass
  if not r.stopped and not waits and allowed == r.allowed then return {'already', '', '0'} end
  if allowed and r.bad > allowed then return {'spent', '', m.us(r.bad)} end
  if allowed ~= r.allowed then set('allowed', m.us(allowed)) end
  if field.over then set('pass', m.us(r.wave + 1)) end
  local before = r.stopped and field.stoppedNote or ''
  if r.stopped then
    -- The stop does not count towards the expiry.
    set('due', m.us(math.max(t.due, m.now)), 'since', m.at,
      'expires', m.us(t.expires + m.now - m.num(r.stopped)))
    m.w('HDEL', t.key, 'stopped', 'stoppedNote')
    r.stopped = false
  end
  r.allowed = allowed
  m.event('go', id, '{"note":' .. cjson.encode(note) .. '}')
  for _ = 1, WAKES do
    if not m.wakeNext(m.ruleOf(id)) then break end
  end
  return {'ok', before, m.us(r.bad)}
end

-- ahead returns how many jobs belong to waves that are not open. ended reports whether all others
-- have ended.
local function ahead() return not r.wave and 0 or call('ZCOUNT', m.kHeld .. id, '(' .. m.us(r.wave), m.WAVES) end
local function ended() return field.committed and t.total - t.done == ahead() end

function verbs.look()
  local aside = m.us(call('ZCARD', m.kHeld .. id) - ahead())
  if not r.wave then return {'ok', aside, '0'} end
  if not ended() then return {'early', aside, '0'} end
  if not field.over then
    field.over = m.at
    set('over', m.at)
    m.event('wave-over', id, '{"wave":' .. m.us(r.wave) .. '}')
  end
  return {'ok', aside, field.over}
end

function verbs.open()
  local n = tonumber(number)
  if r.wave and r.wave >= n then return {'already', '', m.us(r.wave)} end
  local may = r.wave == n - 1 and n <= m.num(field.waves) and ended() and field.over
  if not may or r.stopped or t.paused or t.cancel then return {'early', '', m.us(r.wave or 0)} end
  -- Its jobs can run from now on, so their expiry counts from now.
  set('wave', m.us(n), 'accepted', m.us(r.bad), 'due', m.at, 'expires', m.us(m.now + m.num(call('HGET', t.key, 'expire'))))
  m.w('HDEL', t.key, 'over', 'pass', 'checks')
  m.event('wave', id, '{"wave":' .. m.us(n) .. ',"note":' .. cjson.encode(note) .. '}')
  return {'ok', '', m.us(n)}
end

function verbs.check()
  if not r.wave or r.wave ~= tonumber(number) or not field.over then return {'early', '', '0'} end
  if field.checks then return {'already', field.checks, '0'} end
  set('checks', text)
  return {'ok', text, '0'}
end

local answer = verbs[verb]()
if m.planned() > 0 then m.flush() end
return answer
