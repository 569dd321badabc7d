-- rule: limits how many jobs of a task may fail, and stops the task. It stands behind exclude.lua
-- inside m.lazy: only tasks with a rule need it; their guard names a semaphore of their own,
-- rule:<task>.
--
-- A job that has begun and not ended holds it. There is a place for the next one as long as failed
-- + begun <= allowed + 1. So when one more has failed than is allowed nothing runs any more, and
-- even any number of workers cannot overshoot. A job that was released untouched or deferred to a
-- window leaves the semaphore, and asks again.
--
-- The semaphore rule:<task> is held by the jobs of the task from their first take to their end. A
-- call counts a failure in the same step in which it may hand out the next job, so that no more
-- than allowed + 1 jobs can fail. When the rule breaks, that call sets `stopped` with the words
-- why. Takes then put fresh jobs aside, as in a pause, and only roll removes `stopped`. One script
-- keeps budgets, breakers and waves, so a task with a rule has one zone.

m.WAVES = '1000' -- a score in held up to this is the number of a wave
m.FAILS = 10 -- names of the last failed hosts are kept, more if the breaker counts more

-- rule returns the rule of a task and its counters, as they will be after the plan, or false if it
-- has none. It is read once a call.
function m.rule(id, t)
  if t.rule ~= nil then return t.rule end
  t.rule = false
  if not t.guard or not string.find(t.guard, m.ruleOf(id), 1, true) then return false end
  local v = call('HMGET', m.kTask .. id, 'allowed', 'lenient', 'breaker', 'since', 'fails', 'stopped',
    'o:failed', 'o:timeout', 'o:rolled_back', 'o:unknown', 'o:unreachable', 'wave')
  local r = {allowed = tonumber(v[1] or ''), bad = 0, since = m.num(v[4]), fails = {},
    stopped = v[6], wave = tonumber(v[12] or ''),
    counts = {failed = true, timeout = true, rolled_back = true, unknown = true,
      unreachable = v[2] ~= '1'}}
  if v[3] then
    local n, within, words = string.match(v[3], '^(%d+) (%d+) (.*)$')
    r.breaker = {n = tonumber(n), within = tonumber(within), words = words}
  end
  for one in string.gmatch(v[5] or '', '%S+') do r.fails[#r.fails + 1] = one end
  for i = 7, 10 do r.bad = r.bad + m.num(v[i]) end
  if r.counts.unreachable then r.bad = r.bad + m.num(v[11]) end
  t.rule = r
  return r
end

function m.ruleOf(task) return 'rule:' .. task end

-- chances returns how many jobs may have begun at a time.
function m.chances(r) return (r.allowed or math.huge) + 1 - r.bad end

-- judge counts the end of a job, and stops the task if that breaks its rule.
function m.judge(id, t, o)
  local task = m.taskOf(id)
  local r = m.rule(task, t)
  if not r or not r.counts[o.outcome] then return end
  r.bad = r.bad + 1
  m.sem(m.ruleOf(task)).max = m.chances(r)
  r.fails[#r.fails + 1] = m.at .. ':' .. m.hostOf(id)
  local most = math.max(m.FAILS, r.breaker and r.breaker.n or 0)
  while #r.fails > most do table.remove(r.fails, 1) end
  m.w('HSET', t.key, 'fails', table.concat(r.fails, ' '))
  local why = not r.stopped and m.broken(t, r)
  if why then m.stopTask(task, t, r, why) end
end

-- broken returns, in words, the part of a rule that no longer holds, or false.
function m.broken(t, r)
  if r.allowed and r.bad > r.allowed then
    return 'max-failed ' .. m.us(r.allowed) .. ' of ' .. m.us(t.total) .. ': ' .. m.us(r.bad) ..
      ' failed: ' .. m.names(r)
  end
  local first = r.breaker and r.fails[#r.fails - r.breaker.n + 1]
  local at = first and tonumber(string.match(first, '^%d+'))
  if not at or at <= r.since or at <= m.now - r.breaker.within then return false end
  return 'breaker ' .. r.breaker.words .. ': ' .. m.us(r.breaker.n) .. ' failed in ' ..
    m.us(math.ceil((m.now - at) / 1000000)) .. ' s: ' .. m.names(r)
end

-- names returns the hosts that failed last.
function m.names(r)
  local names = {}
  for i, one in ipairs(r.fails) do names[i] = string.match(one, ':(.*)$') end
  return table.concat(names, ',') .. (r.bad > #names and ',…' or '')
end

-- stopTask lets no further job of a task begin, until a person orders it to continue.
function m.stopTask(id, t, r, why)
  r.stopped = m.at
  m.w('HSET', t.key, 'stopped', m.at, 'stoppedNote', why)
  m.event('stop', id, '{"note":' .. cjson.encode(why) .. '}')
end

-- stands reports whether a job must not begin because its task was stopped.
function m.stands(id, t)
  local task = m.taskOf(id)
  local r = t.guard and m.rule(task, t)
  return r and r.stopped and not m.holds(id, m.ruleOf(task))
end
