-- seldom: the part of step for unusual results and due jobs. It stands behind exclude.lua and
-- job.lua inside m.lazy.

function m.words(s)
  local out = {}
  for word in string.gmatch(s, '%S+') do out[#out + 1] = word end
  return out
end

-- granted adds a job that is handed out to the answer.
function m.granted(of, host, grant)
  m.grantedTo[#m.grantedTo + 1] = of
  m.grantedTo[#m.grantedTo + 1] = host
  m.grants[#m.grants + 1] = grant
end

-- earlier returns the answer that is stored in hold.
function m.earlier(text)
  local line = {}
  for one in string.gmatch(text, '([^\n]*)\n') do line[#line + 1] = one end
  m.late, m.grants, m.grantedTo = m.words(line[3]), {}, {}
  for i = 5, #line do
    local id = string.match(line[i], '^[^\t]+')
    m.granted(m.taskOf(id), m.hostOf(id), line[i])
  end
  local answer = m.words(line[2])
  return m.reply(answer[1], answer[2])
end

-- spellOut appends the long form of a result of kind ended behind all others.
function m.spellOut(i)
  local n = #ARGV
  for k, part in ipairs({ARGV[i], ARGV[i + 1], 'end', ARGV[i + 3], '', ARGV[i + 4], '', '0', '0', '0',
    '', '0', '0', '', ARGV[i + 5]}) do ARGV[n + k] = part end
  return n + 1
end

-- result applies one result.
function m.result(i)
  local id, token = ARGV[i], ARGV[i + 1]
  local ends = ARGV[i + 2] == 'end'
  local j = ends and m.jobToEnd(id) or m.job(id)
  if j.token ~= token or (j.state ~= 'running' and j.state ~= 'lost') then
    if not (j.token == token and j.state == 'ended' and j.outcome == ARGV[i + 3]) then
      if m.late == m.NONE then m.late = {} end
      m.late[#m.late + 1] = id
      m.event('late', id, '{"token":' .. token .. ',"kind":"' .. ARGV[i + 2] .. '","outcome":"' ..
        ARGV[i + 3] .. '"}')
    end
    return
  end
  local output = ARGV[i + 13]
  if output ~= '' then
    if j.live then m.replaceLive(id, token) end
    m.w('XADD', m.kOut .. id, 'MAXLEN', '~', '1000', '*', 'said', output)
    m.w('PEXPIRE', m.kOut .. id, m.DAY)
  end
  local t = m.task(m.taskOf(id))
  if ends or not t then
    m.finish(id, j, {outcome = ARGV[i + 3], class = ARGV[i + 4], exit = ARGV[i + 5],
      err = ARGV[i + 6], note = ARGV[i + 10], keep = ARGV[i + 12] == '1', spent = ARGV[i + 14]})
  else
    m.rescore(i, id, j, t)
  end
end

-- grant hands a job out.
function m.grant(id, j, t, from, lost, mine, list)
  local host = sub(id, 12)
  m.lastToken = math.max(m.lastToken + 1, m.now)
  local token = m.us(m.lastToken)
  m.tokenText = token
  local mode = lost and 'lost' or (j.attempt == 0 and 'fresh' or 'continue')
  -- The lock lasts from the token, even if that is ahead of Redis' clock.
  local ends, bound = m.lastToken + t.timeout, 0
  if lost and mine then
    -- The old attempt may still act on the host: the end of its lock stays.
    ends, bound = m.untils[host], m.lockLeft(host)
  end
  m.lock(id, token, ends)
  m.toTime[#m.toTime + 1] = m.again(t)
  m.toTime[#m.toTime + 1] = id
  if from == m.kQueue or not j.state then m.toUnqueue[#m.toUnqueue + 1] = id end
  if from == m.kAgain and m.zone.waits and (not j.state or j.state == 'blocked') then
    m.wAfter('ZREM', m.kWait .. 'host/' .. host, id)
  end
  if j.state ~= 'running' then m.count(t, 'running', 1) end
  if not t.started then
    t.started = m.at
    m.w('HSET', t.key, 'started', t.started)
  end
  local before, due = j.node, j.due > 0 and m.us(j.due) or t.dueText
  j.was = m.was(j, mine)
  j.state, j.lost, j.live, j.token = 'running', lost, false, token
  j.attempt, j.node = j.attempt + 1, m.who
  j.due, j.started, j.why = tonumber(due), j.started or m.at, ''
  m.keep(id, j)
  m.event('take', id, '{"node":"' .. m.who .. '","attempt":' .. m.us(j.attempt) ..
    (lost and ',"lost":true' or '') .. '}')
  if list then m.acquire(id, list, token) end
  m.held[id] = token
  m.granted(t.id, host, table.concat({id, token, mode, j.attempt, j.tries, j.probes, j.crashes,
    j.step, due, m.us(t.timeout), m.us(bound), before, m.spent(j), j.saved}, '\t'))
end

-- consider handles one due job. A call that finds a job that cannot run moves it: nothing may block
-- the front.
function m.consider(id, from)
  local t = m.task(m.taskOf(id))
  if not t then
    m.w('ZREM', from, id)
    m.event('orphan', id, '{"why":"its task is gone"}')
    return
  end
  -- A job in queue has never started: there is nothing to read.
  local j = from == m.kQueue and m.freshJob() or m.job(id)
  if j.state == 'ended' then
    m.reopen(t)
    m.toDrop[#m.toDrop + 1] = id
    return
  end
  local lock = m.locked(m.hostOf(id))
  local mine = lock and j.token and lock == j.token .. ' ' .. id
  if j.state == 'running' and mine then
    -- The lock outlives the score: its end decides, not the clock.
    m.w('ZADD', m.kAgain, 'XX', m.us(m.now + m.lockLeft(m.hostOf(id)) + m.lockDelay(t.timeout)), id)
    return
  end
  local lost = j.state == 'running' or j.state == 'lost'
  local list = t.guard and m.needs(id, t)
  local lack = m.fate(id, j, t, from, lost)
  if not lack and (lock and not mine or not mine and not lost and m.keptAway(id, j, t)) then lack = 'host/' .. m.hostOf(id) end
  if not lack and list and not lost then lack = m.lacks(id, list, from == m.kQueue) end
  if not lack and m.want > 0 then
    m.grant(id, j, t, from, lost, mine, list)
  elseif not lack and lost then
    m.see(id, j)
  elseif lack and lack ~= '' then
    m.block(id, j, t, from, lack)
  end
  if lack and list and from == m.kAgain then m.passOn(list) end
end

-- fate ends or puts aside a job that must not run, and returns '' then.
function m.fate(id, j, t, from, lost)
  if lost then return nil end
  local expires = t.expires + j.later
  local unproven = m.unproven(id, t)
  if t.cancel or j.cancel then
    m.finish(id, j, m.cancelled(j, t.cancel or j.cancel))
    m.leave(id)
  elseif t.by and not j.started and m.has(t.by, m.hostOf(id)) then
    m.finish(id, j, {outcome = 'superseded', err = 'superseded by task ' .. t.by})
    m.leave(id)
  elseif unproven then
    local after = j.step > 0 and 'stopped after step ' .. m.us(j.step) .. ': ' or ''
    m.finish(id, j, {outcome = 'skipped', err = after .. unproven})
    m.leave(id)
  elseif j.state ~= 'verify' and (t.paused or m.zone.customers and m.customerPaused(id, t) or
    m.stands(id, t)) then
    -- A host that was disturbed is verified all the same.
    m.w('ZADD', m.kHeld .. m.taskOf(id), m.at, id)
    m.w('SADD', m.kParked, m.taskOf(id))
    m.wAfter('ZREM', from, id)
  elseif j.attempt == 0 and expires <= m.now then
    m.finish(id, j, {outcome = 'expired', err = 'did not start before its expiry'})
    m.leave(id)
  else
    return nil
  end
  return ''
end
