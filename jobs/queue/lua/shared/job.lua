-- job: the operations on one job. It stands behind the prelude inside m.lazy: step.lua repeats, in
-- a shorter form, the parts that nearly all results and takes need.
--
-- A record is one string in the hash of its task. Its first line has thirteen words: the state;
-- whether the attempt verifies a lost one, the job had kept its host for a probe or an appointment,
-- or output of its host was received; token, attempt, tries, probes, crashes, step, due; by how
-- much its expiry is later than its task's; started; node. Behind them a job with more attempts has
-- a ledger of its time, and why it waits. The lines that follow are the values that its steps
-- saved, the cancel, and the end (exit code, ledger, maybe a note). Workers count the ledger: a
-- letter and µs for each use, see jobs/times.go. So one call reads and writes the jobs of a step
-- with their task. Records are kept until 24 h after the end of the task.

function m.record(id)
  local r = m.records[id]
  if r == nil then
    r = call('HGET', m.kTask .. m.taskOf(id), sub(id, 11))
    m.records[id] = r
  end
  return r
end

-- A record has one line that every job has; then one line each for the values its steps saved, for
-- who cancelled it, and for its end. record.go reads the same.
--   state lost live token attempt tries probes crashes step due later started node spent why
--   ended outcome class exit+spent error, and maybe one line more: a note
-- lost: 1: the present attempt verifies a lost one; 2, 3: the job was between attempts with its
-- host, and waits in the same way again if it is released (m.WAS); live: output of its host was
-- received while it ran; later: by how much its expiry is later than its task's, because it was
-- deferred or has a time of its own; spent: a ledger of its time, written by workers
-- (jobs/times.go); why: it was deferred, waits, or is tried again.

-- The former state, in its record, of a job that was handed out with a host that it had kept.
m.WAS = {verify = '2', wait = '3', ['2'] = 'verify', ['3'] = 'wait'}

-- was returns the state to which a job that is handed out returns if it is released.
function m.was(j, mine)
  return j.state == 'verify' and 'verify' or mine and j.state == 'wait' and 'wait' or false
end

-- job returns the stored state of a job; its field state is false before its first take.
function m.job(id)
  local r = m.record(id)
  if not r then return m.freshJob() end
  local state, lost, live, token, attempt, tries, probes, crashes, step, due, later, started, node,
    spent, why, saved, cancel, ended = string.match(r, '^(%l+) (%d) (%d) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ' ..
      '(%d+) (%d+) (%d+) ([^ \n]*) ?(%S*) ?([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
  return {state = state, lost = lost == '1', was = m.WAS[lost] or false, live = live == '1',
    token = token ~= '0' and token, attempt = tonumber(attempt), tries = tonumber(tries),
    probes = tonumber(probes), crashes = tonumber(crashes), step = tonumber(step), due = tonumber(due),
    later = tonumber(later), started = started ~= '0' and started, node = node,
    spent = spent ~= '-' and spent or '', why = why, saved = saved,
    cancel = cancel ~= '' and cancel, outcome = string.match(ended, '^%d+ (%S+)')}
end

-- jobToEnd returns what the end of a job needs of it; rest is the other part of its record.
function m.jobToEnd(id)
  local r = m.record(id)
  if not r then return {state = false, token = false} end
  local state, lost, live, token, rest = string.match(r, '^(%l+) (%d) (%d) (%d+)(.*)$')
  return {state = state, lost = lost == '1', live = live == '1', token = token ~= '0' and token,
    rest = rest, outcome = string.match(rest, '^[^\n]*\n[^\n]*\n[^\n]*\n%d+ (%S+)')}
end

-- freshJob returns a job that has never started: it has no record, unless it has a time of its own;
-- then it waits in again, queued, with due and later.
function m.freshJob()
  return {state = false, lost = false, was = false, live = false, token = false, attempt = 0, tries = 0,
    probes = 0, crashes = 0, step = 0, due = 0, later = 0, started = false, node = '', spent = '', why = '',
    saved = '', cancel = false}
end

-- keep plans to store a job as it is now; ended is the last line of the record.
function m.keep(id, j, ended) m.put(id, m.form(j, ended)) end

-- form encodes a job as its record.
function m.form(j, ended)
  return table.concat({j.state, j.lost and '1' or m.WAS[j.was] or '0', j.live and '1' or '0', j.token or '0', j.attempt, j.tries,
    j.probes, j.crashes, j.step, m.us(j.due), m.us(j.later), j.started or '0', j.node}, ' ') ..
    m.beside(j) .. '\n' .. m.line(j.saved) .. '\n' .. m.line(j.cancel or '') .. '\n' .. (ended or '')
end

-- beside returns the part of a record line behind its node.
function m.beside(j)
  if j.spent == '' and j.why == '' then return '' end
  return ' ' .. (j.spent ~= '' and j.spent or '-') .. (j.why ~= '' and ' ' .. m.line(j.why) or '')
end

-- spent returns the ledger of a job before an attempt: if the job was never begun and has a time of
-- its own, the wait for that time.
function m.spent(j)
  return j.spent == '' and j.later > 0 and 'w' .. m.us(j.later) or j.spent
end

-- later reports whether an order came after the order upTo; '' is after all.
function m.later(id, upTo) return upTo ~= '' and m.num(id) > m.num(upTo) end

-- line returns a text on one line.
function m.line(s) return (string.gsub(s, '\n', ' ')) end

-- lock plans that a job holds its host until an instant by Redis' own clock.
function m.lock(id, token, until_)
  local host, n = sub(id, 12), #m.toTake
  m.locks[host] = token .. ' ' .. id
  m.toTake[n + 1], m.toTake[n + 2] = host, m.us(until_) .. ' ' .. m.locks[host]
end

-- unlock gives up the host of a job, if the job holds it. The token is the instant of the take, so
-- until its timeout has passed the lock certainly belongs to the job, and need not be read; except
-- for a while after a restart of Redis, which may have forgotten another take.
function m.unlock(id, j, t)
  local host = m.hostOf(id)
  local sure = t and j.state == 'running' and not j.lost and
    m.now < m.num(j.token) + t.timeout - 1000 and
    m.num(j.token) > m.num(m.zone.epoch) + m.zone.longest
  if not sure and (not j.token or m.locked(host) ~= j.token .. ' ' .. id) then return end
  m.toFree[#m.toFree + 1] = host
  m.locks[host] = false
  if m.zone.waits then m.wakeFor(host) end
end

-- leave plans that a job leaves queue for its end, through again: a script that breaks off before
-- the end leaves it there.
function m.leave(id)
  m.toTime[#m.toTime + 1] = m.at
  m.toTime[#m.toTime + 1] = id
  m.toUnqueue[#m.toUnqueue + 1] = id
end

-- reopen lets a task be closed whose jobs have all ended, if the script that ended the last one
-- broke off before that.
function m.reopen(t)
  t.open = t.done >= t.total and not call('HGET', t.key, 'ended')
end

-- finish ends a job. o: outcome, class, exit, err, note, keep (the host stays locked until its lock
-- ends by itself), half (only its group is in doubt), at (the time of the end if it is not now:
-- history knew it, and need not read it again).
function m.finish(id, j, o)
  local t = m.task(m.taskOf(id))
  local exit, err, note = o.exit or '', o.err or '', o.note or ''
  m.event('end', id, '{"outcome":"' .. o.outcome .. '"' ..
    (exit ~= '' and ',"exit":' .. exit or '') ..
    (err ~= '' and ',"error":' .. cjson.encode(err) or '') ..
    (note ~= '' and ',"how":' .. cjson.encode(note) or '') ..
    (o.at and ',"recalled":true' or '') .. '}')
  if t then
    m.count(t, o.outcome, 1)
    if j.state == 'running' then m.count(t, 'running', -1) end
    m.weigh(id, j, t, o)
    if t.guard then m.judge(id, t, o) end
    -- This comes before the end of the job: a script that broke off in between would leave holders
    -- to a job that nobody looks at again.
    if t.guard and j.token then m.settle(id, t, o) end
  end
  if not o.keep then m.unlock(id, j, t) end
  local class = o.class or ''
  local ended = (o.at or m.at) .. ' ' .. o.outcome .. ' ' .. (class ~= '' and class or '-') .. ' ' ..
    (exit ~= '' and exit or '-') .. '+' .. (o.spent or '') .. ' ' .. (err ~= '' and m.line(err) or '') ..
    (note ~= '' and '\n' .. m.line(note) or '')
  if j.rest then
    m.put(id, 'ended ' .. (j.lost and '1 0 ' or '0 0 ') .. j.token .. j.rest .. ended)
  else
    j.state, j.was, j.live = 'ended', false, false
    m.keep(id, j, ended)
  end
  m.toDrop[#m.toDrop + 1] = id
end

-- Quarantine: hosts that take no job but checks, until a person releases them or a check succeeds
-- there.
--
-- The key quarantined has a host to "µs job why"; the job is - if a person ordered it. While it has
-- a host, the zone has the field quarantine, and takes look. A task may have a field of the same
-- name: `unknown` if a job of it that ends unknown sets its host aside, `check` if its jobs may go
-- to such hosts, and release them by success. All of it is written by the call that ends the job.

-- inQuarantine reports whether a host is in quarantine, as it will be after the plan.
function m.inQuarantine(host)
  if not m.zone.quarantine then return false end
  local is = m.aside[host]
  if is == nil then
    is = call('HEXISTS', m.kQuarantined, host) == 1
    if m.aside == m.NONE then m.aside = {} end
    m.aside[host] = is
  end
  return is
end

-- asideSince returns the instant at which a host was set aside. One that the plan sets aside has
-- none yet, and counts as set aside now.
function m.asideSince(host)
  local entry = call('HGET', m.kQuarantined, host)
  return entry and m.num(string.match(entry, '^%d+')) or m.now
end

-- kindOf returns what a task is to hosts in quarantine.
function m.kindOf(t) return call('HGET', t.key, 'quarantine') end

-- keptAway reports whether a job must wait until its host is released. A host that a job has
-- disturbed is verified all the same, and a job that kept its host goes on.
function m.keptAway(id, j, t)
  return j.state ~= 'verify' and m.inQuarantine(m.hostOf(id)) and m.kindOf(t) ~= 'check'
end

-- setAside puts a host into quarantine, or takes it out of it.
function m.setAside(host, entry)
  m.zone.quarantine = m.zone.quarantine or '1'
  m.inQuarantine(host)
  if m.aside == m.NONE then m.aside = {} end
  m.aside[host] = entry and true
  m.left = m.left or call('HLEN', m.kQuarantined)
  if entry then
    m.left = m.left + 1 -- callers have seen that it is not there
    m.w('HSET', m.kZone, 'quarantine', '1') -- first: a break between them must not hide the host
    m.w('HSET', m.kQuarantined, host, m.at .. ' ' .. entry)
    return
  end
  m.w('HDEL', m.kQuarantined, host)
  m.left = m.left - 1
  if m.left == 0 then m.w('HDEL', m.kZone, 'quarantine') end
end

-- weigh lets the end of a job decide about its host. A check that began before its host was set
-- aside has not seen what was wrong; the token of a job is the instant at which it began.
function m.weigh(id, j, t, o)
  local host = m.hostOf(id)
  if o.outcome == 'unknown' then
    if not m.inQuarantine(host) and m.kindOf(t) == 'unknown' then
      m.setAside(host, id .. ' ' .. (o.err or ''))
      m.event('quarantine', host, '{"job":' .. cjson.encode(id) .. ',"note":' ..
        cjson.encode(o.err or '') .. '}')
    end
  elseif o.outcome == 'succeeded' and m.inQuarantine(host) and m.kindOf(t) == 'check' and
      m.num(j.token) > m.asideSince(host) then
    m.setAside(host, false)
    m.event('unquarantine', host, '{"job":' .. cjson.encode(id) .. '}')
  end
end
