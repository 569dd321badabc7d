-- recall: gives facts that history knows about jobs to a Redis that may have forgotten them,
-- because it was restarted, perhaps from an older copy. A zone with a history has the field
-- recorded; in each new epoch it gets the field owed, and nothing starts until history was asked
-- about all its open tasks.
--
-- KEYS 1 zone
-- ARGV 1 verb  2 owed, as the caller read it, or why  3 task
--      keep      the zone has a history. 2 = why it must be asked at once, '' = it need
--                not be
--      jobs      3 = task; 4 = id of the last entry of the zone's stream that history has
--                read; then 10 each: host, outcome, class, exit, error, note, attempt,
--                node, when it began and when it ended in µs. Without an outcome: this
--                attempt began, and history knows no end of it
--      done      history was asked about all tasks
-- Returns {ok | absent | stale (owed has another reason by now) | behind (history has not
--      read all events of these jobs here), ended, lost}
-- Keeps: a job that has ended stays as it is. A job that history knows as ended ends in the
--      same way. A job of which history knows a later attempt is lost: the next worker
--      verifies how it ended; if its task is not committed no worker gets it, and it ends
--      unknown. Repeating a call changes nothing. If the stream has an event of a job that
--      history has not read, Redis is ahead of history and has forgotten nothing: a job that
--      was in hand when the zone was shut may have been deferred since.
--
-- Redis may have lost more than children can report. The server that writes history compares all
-- open tasks with it, 100 jobs a call. A job that history knows as ended ends in the same way, with
-- its counters, groups and limits. A job of which history knows a later attempt, and no end,
-- becomes `lost`: the next worker verifies it. But if the stream has an entry about that job behind
-- the last one that history read, Redis is ahead of history, and the comparison waits until history
-- has read it. The same happens when the historian finds that a stream of events is shorter than
-- its copy, or that a zone which it knows has forgotten `recorded`.

local verb, owed, task = ARGV[1], ARGV[2], ARGV[3]
local UNHEARD = 1000 -- entries searched at most; history reads the others first

m.begin()
if not m.zone.run then return {'absent', '0', '0'} end
local ended, lost = 0, 0

local function keep()
  if call('HGET', m.kZone, 'recorded') ~= '1' then m.w('HSET', m.kZone, 'recorded', '1') end
  if owed == '' or m.zone.owed then return end
  m.w('HSET', m.kZone, 'owed', m.at .. ' ' .. owed)
  m.event('freeze', 'zone', '{"why":' .. cjson.encode(owed) .. '}')
end

local function done()
  m.w('HDEL', m.kZone, 'owed')
  m.event('recalled', 'zone')
  m.w('PUBLISH', m.kWake, '')
end

-- began restores an attempt that Redis had forgotten.
local function began(id, t, j, at)
  -- The token keeps its age: a child that has the job, and reports later, has a newer one.
  j.state, j.was, j.live = 'lost', false, false
  j.attempt, j.node, j.started = tonumber(at.attempt), at.node, j.started or at.began ~= '0' and at.began or m.at
  j.due = j.due > 0 and j.due or t.due
  m.w('ZADD', m.kAgain, m.at, id)
  m.w('ZREM', m.kQueue, id)
  m.w('ZREM', m.kHeld .. task, id)
  m.keep(id, j)
  if not t.started then
    t.started = m.at
    m.w('HSET', t.key, 'started', m.at)
  end
  if t.guard then
    m.acquire(id, m.needs(id, t), j.token or '0')
    m.doubt(id, m.needs(id, t))
  end
  m.event('lost', id, '{"node":' .. cjson.encode(at.node) ..
    ',"why":"Redis had forgotten this attempt; history knows that it began"}')
  lost = lost + 1
end

-- unheard reports whether history still has to read an event of one of these jobs.
local function unheard(ids)
  if #ids == 0 then return false end
  local list = call('XRANGE', m.kEvents, ARGV[4] ~= '' and '(' .. ARGV[4] or '-', '+',
    'COUNT', m.us(UNHEARD))
  for _, entry in ipairs(list) do
    for _, id in ipairs(ids) do
      if string.find(entry[2][2], ' ' .. id .. ' ', 1, true) then return true end
    end
  end
  return #list == UNHEARD
end

-- forgotten reports whether history knows more about a job than Redis.
local function forgotten(j, o)
  return o.outcome ~= '' or
    j.state ~= 'running' and j.state ~= 'lost' and j.attempt < tonumber(o.attempt)
end

-- jobs gives the jobs of a task back. It returns false, and has done nothing, if history is behind.
local function jobs()
  local t = m.task(task)
  if not t then return true end
  local hosts, what = {}, {}
  for i = 5, #ARGV, 10 do
    hosts[#hosts + 1] = ARGV[i]
    what[ARGV[i]] = {outcome = ARGV[i + 1], class = ARGV[i + 2], exit = ARGV[i + 3], err = ARGV[i + 4],
      note = ARGV[i + 5], attempt = ARGV[i + 6], node = ARGV[i + 7], began = ARGV[i + 8], at = ARGV[i + 9]}
  end
  local names, ids, inQueue, inAgain, inHeld = m.places(task, table.concat(hosts, '\n'), 0, #hosts)
  m.readJobs(ids)
  local committed = call('HGET', t.key, 'committed')
  local aside, gone = {'ZADD', m.kHeld .. task, 'XX'}, {'ZREM', m.kHeld .. task}
  local open, doubtful = {}, {}
  for i, host in ipairs(names) do
    local j = m.job(ids[i])
    -- The others ended here too, or belong to another zone.
    open[i] = j.state ~= 'ended' and (j.state or inQueue[i] or inAgain[i] or inHeld[i]) and
      forgotten(j, what[host])
    if open[i] and what[host].outcome == '' then doubtful[#doubtful + 1] = ids[i] end
  end
  if unheard(doubtful) then return false end
  for i, host in ipairs(names) do
    local id, o = ids[i], what[host]
    local j = m.job(id)
    if open[i] and o.outcome == '' and committed then
      began(id, t, j, o)
    elseif open[i] then
      if o.outcome == '' then
        -- The commit of its task is forgotten, and the job may expire before the next commit.
        o.outcome, o.at = 'unknown', m.at
        o.err = 'it began, and Redis had forgotten its task before that was committed'
      end
      j.attempt, j.node = math.max(j.attempt, tonumber(o.attempt)), o.node
      j.token = j.token or m.zone.epoch
      if o.began ~= '0' then j.started = o.began end
      m.finish(id, j, o)
      if inQueue[i] then m.leave(id) end
      if inHeld[i] then
        aside[#aside + 1] = m.at
        aside[#aside + 1] = id
      end
      gone[#gone + 1] = id
      ended = ended + 1
    end
  end
  m.reopen(t)
  if #aside > 3 then m.w(unpack(aside)) end
  if #gone > 2 then m.wLast(unpack(gone)) end
  return true
end

if verb == 'keep' then
  keep()
elseif (m.zone.owed or '') ~= owed then
  return {'stale', '0', '0'}
elseif verb == 'jobs' then
  if not jobs() then return {'behind', '0', '0'} end
else
  done()
end
if m.planned() > 0 or #m.happened > 0 then m.flush(true) end
return {'ok', m.us(ended), m.us(lost)}
