-- move: commits, pauses or resumes a task. The first call sets one flag, which
-- takes obey at once; then the jobs are moved in chunks, by any server.
--
-- KEYS 1 zone
-- ARGV 1 task  2 commit | pause | resume | release  3 jobs to move at most (1..500)
--      4 who and why, for people
--      5 pause only: number of the chunk of hosts whose jobs are moved
--      6 pause, resume: id of the order, or ''; with one, resume does nothing to a
--      pause that was ordered later
--      release returns jobs that were put aside with a customer, unless the task itself is
--      paused. In a task that is not committed resume and release return only jobs
--      that have begun: they were handed out before a failover forgot the commit
-- Returns {ok, jobs left to move, note} | {incomplete, jobs held} | {absent, 0} |
--      {ended, 0} | {cancelled, 0} | {later, 0, note}: a pause that was ordered after
--      this resume stands. pause counts the jobs it moved instead. note belongs to the
--      pause that stood already, or that ends; '' if there was none.
-- Keeps: a job is moved by adding it to its new place before it leaves the old;
--      a job without record has never started and belongs to queue. A task whose jobs have
--      all ended is closed, if the script that ended the last one broke off before that.

local id, what, limit, note = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

m.begin()
local t = m.zone.run and m.task(id)
if not t then return {'absent', 0} end
if t.done >= t.total then
  m.reopen(t)
  if t.open then
    m.wLast('DEL', m.kHeld .. id)
    m.flush()
  end
  -- All jobs may have been cancelled here before the jobs of the other zones were put.
  local never = what == 'commit' and t.cancel and not call('HGET', t.key, 'committed')
  return {never and 'cancelled' or 'ended', 0}
end

-- In a task with waves only jobs of open waves are released: a job that was put aside has an
-- instant as its score, and one that never was in the queue its wave.
local r = m.rule(id, t)
local upTo = r and r.wave and m.us(r.wave)

local function releasable()
  if not upTo then return call('ZRANGE', m.kHeld .. id, 0, limit - 1, 'WITHSCORES') end
  local jobs = call('ZRANGEBYSCORE', m.kHeld .. id, '-inf', upTo, 'WITHSCORES', 'LIMIT', '0',
    m.us(limit))
  local more = limit - #jobs / 2
  if more > 0 then
    for _, v in ipairs(call('ZRANGEBYSCORE', m.kHeld .. id, '(' .. m.WAVES, '+inf', 'WITHSCORES',
      'LIMIT', '0', m.us(more))) do
      jobs[#jobs + 1] = v
    end
  end
  return jobs
end

local function left()
  if not upTo then return call('ZCARD', m.kHeld .. id) end
  return call('ZCARD', m.kHeld .. id) - call('ZCOUNT', m.kHeld .. id, '(' .. upTo, m.WAVES)
end

-- A job that never began has its wave as its score, or 0, or a time of its own; a job that was put
-- aside has an instant.
local function laidAside()
  return call('ZRANGEBYSCORE', m.kHeld .. id, '(' .. m.WAVES, '+inf', 'WITHSCORES', 'LIMIT', '0',
    m.us(limit))
end

-- release moves held jobs back into queue or, if they had started, into again. Jobs that a stop put
-- aside stay there. all: also jobs that never began.
local function release(all)
  if r and r.stopped then return end
  local jobs = all and releasable() or laidAside()
  if #jobs < 2 * limit then m.w('SREM', m.kParked, id) end
  if #jobs == 0 then return end
  local queue, again, moved = {'ZADD', m.kQueue}, {'ZADD', m.kAgain}, {'ZREM', m.kHeld .. id}
  if what ~= 'commit' or t.started or t.done > 0 or call('HEXISTS', t.key, 'own') == 1 then
    local ids = {}
    for i = 1, #jobs, 2 do ids[#ids + 1] = jobs[i] end
    m.readJobs(ids)
  end
  for i = 1, #jobs, 2 do
    local to = m.records[jobs[i]] and again or queue
    local j = to == again and m.job(jobs[i])
    local begun = j and (j.attempt > 0 or j.state ~= 'queued')
    -- The script that ended it, or put it aside before another took it, broke off.
    local stays = j and (j.state == 'ended' or j.state == 'running' or j.state == 'lost')
    if not stays and (all or begun) then
      if j then
        j.state = 'queued'
        m.keep(jobs[i], j)
      end
      to[#to + 1] = m.us(math.max(m.num(jobs[i + 1]), t.due))
      to[#to + 1] = jobs[i]
    end
    if all or begun then moved[#moved + 1] = jobs[i] end
  end
  if #moved == 2 then return end
  if #queue > 2 then m.w(unpack(queue)) end
  if #again > 2 then m.w(unpack(again)) end
  m.w(unpack(moved))
  if what ~= 'commit' then m.w('HINCRBY', m.kZone, 'changes', '1') end
  m.w('PUBLISH', m.kWake, '')
end

-- whole reports whether all jobs of the task were put. A job that ran before a failover forgot the
-- commit is no longer in held, but its chunk is there.
local function whole(held)
  if held + t.done == t.total then return true end
  if not t.started then return false end
  for chunk = 0, m.num(call('HGET', m.kTask .. id, 'chunks')) - 1 do
    if call('HEXISTS', m.kTask .. id, 'hosts:' .. m.us(chunk)) == 0 then return false end
  end
  return true
end

local function commit()
  if not call('HGET', m.kTask .. id, 'committed') then
    local held = call('ZCARD', m.kHeld .. id)
    if t.cancel then return {'cancelled', 0} end
    if not whole(held) then return {'incomplete', held} end
    local v = call('HMGET', m.kTask .. id, 'at', 'expire')
    t.due = math.max(m.now, m.num(v[1]))
    m.w('PERSIST', m.kTask .. id)
    m.w('PERSIST', m.kHeld .. id)
    m.w('HSET', m.kTask .. id, 'committed', m.at, 'due', m.us(t.due),
      'expires', m.us(t.due + m.num(v[2])))
    m.w('ZADD', m.kOpen, m.us(t.due), id)
    if r then m.w('SADD', m.kRolling, id) end
    m.event('commit', id, '{"jobs":' .. m.us(held) .. '}')
  end
  if not t.paused then release(true) end
end

-- committed reports whether the task is committed; only commit itself does without this call.
local function committed() return call('HGET', m.kTask .. id, 'committed') and true end

local before = t.paused and (call('HGET', m.kTask .. id, 'pausedNote') or '-') or ''

-- A pause that stands keeps its note, and takes the id of the latest order.
local function pause()
  if t.paused then
    if m.num(ARGV[6]) > m.num(call('HGET', m.kTask .. id, 'pausedId')) then
      m.w('HSET', m.kTask .. id, 'pausedId', ARGV[6])
    end
  else
    m.w('HSET', m.kTask .. id, 'paused', m.at, 'pausedNote', note,
      'pausedId', m.us(m.num(ARGV[6])))
    m.event('pause', id, '{"note":' .. cjson.encode(note) .. '}')
  end
  local hosts = call('HGET', m.kTask .. id, 'hosts:' .. ARGV[5]) or ''
  local ids = {}
  for host in string.gmatch(hosts, '[^\n]+') do ids[#ids + 1] = id .. ':' .. host end
  local scores = #ids > 0 and call('ZMSCORE', m.kQueue, unpack(ids)) or {}
  local add, gone, moved = {'ZADD', m.kHeld .. id}, {'ZREM', m.kQueue}, 0
  for i, score in ipairs(scores) do
    if score and moved < limit then
      add[#add + 1] = m.us(tonumber(score))
      add[#add + 1] = ids[i]
      gone[#gone + 1] = ids[i]
      moved = moved + 1
    end
  end
  if moved > 0 then
    m.w(unpack(add))
    m.w(unpack(gone))
  end
  m.flush()
  return {'ok', moved, before}
end

local function resume()
  if t.paused and m.later(call('HGET', m.kTask .. id, 'pausedId'), ARGV[6] or '') then
    return {'later', 0, before}
  end
  if t.paused then
    -- The pause does not count towards the expiry.
    t.due = math.max(t.due, m.now)
    m.w('HDEL', m.kTask .. id, 'paused', 'pausedNote', 'pausedId')
    m.w('HSET', m.kTask .. id, 'due', m.us(t.due),
      'expires', m.us(t.expires + m.now - m.num(t.paused)))
    m.event('resume', id, '{"note":' .. cjson.encode(note) .. '}')
  end
  release(committed())
end

local answer
if what == 'commit' then
  answer = commit()
elseif what == 'pause' then
  answer = pause()
elseif what == 'resume' then
  answer = resume()
elseif not t.paused then
  release(committed())
end
if answer then return answer end
m.flush()
return {'ok', left(), before}
