-- recall: what history knows of jobs, for a Redis that may have forgotten it: one that was
-- started anew, perhaps from an older copy. A zone of which history is kept has the field
-- recorded; in each new epoch it gets the field owed, and nothing starts until history was
-- asked about all its open tasks.
--
-- KEYS 1 zone
-- ARGV 1 verb  2 owed, as the caller read it, or why  3 task
--      keep      history is kept of this zone. 2 = why it must be asked at once, '' = it
--                need not be
--      jobs      3 = task; then 10 each: host, outcome, class, exit, error, note, attempt,
--                node, when it began and when it ended in µs. Without an outcome: this
--                attempt began, and nobody knows its end
--      done      history was asked about all tasks
-- Returns {ok | absent | stale (it is owed for another reason by now), ended, lost}
-- Keeps: a job that has ended stays as it is. One that history knows as ended ends in the same
--      way. One of which history knows a later attempt is lost: who has it next finds out
--      what became of that; of a task that is not committed nobody has it next, and it ends
--      unknown. Repeating a call changes nothing.

local verb, owed, task = ARGV[1], ARGV[2], ARGV[3]

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

-- began is a job with an attempt that Redis had forgotten.
local function began(id, t, j, at)
  if j.state == 'running' or j.state == 'lost' or j.attempt >= tonumber(at.attempt) then return end
  -- Its token stays as old as it is: a child that has the job, and speaks later, has a newer one.
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

local function jobs()
  local t = m.task(task)
  if not t then return end
  local hosts, what = {}, {}
  for i = 4, #ARGV, 10 do
    hosts[#hosts + 1] = ARGV[i]
    what[ARGV[i]] = {outcome = ARGV[i + 1], class = ARGV[i + 2], exit = ARGV[i + 3], err = ARGV[i + 4],
      note = ARGV[i + 5], attempt = ARGV[i + 6], node = ARGV[i + 7], began = ARGV[i + 8], at = ARGV[i + 9]}
  end
  local names, ids, inQueue, inAgain, inHeld = m.places(task, table.concat(hosts, '\n'), 0, #hosts)
  m.readJobs(ids)
  local committed = call('HGET', t.key, 'committed')
  local aside, gone = {'ZADD', m.kHeld .. task, 'XX'}, {'ZREM', m.kHeld .. task}
  for i, host in ipairs(names) do
    local id, o = ids[i], what[host]
    local j = m.job(id)
    if j.state == 'ended' or not (j.state or inQueue[i] or inAgain[i] or inHeld[i]) then
      -- it ended here too, or is not of this zone
    elseif o.outcome == '' and committed then
      began(id, t, j, o)
    elseif o.outcome ~= '' or j.attempt < tonumber(o.attempt) then
      if o.outcome == '' then
        -- Its task was committed in what Redis has forgotten, and may expire before it is again.
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
end

if verb == 'keep' then
  keep()
elseif (m.zone.owed or '') ~= owed then
  return {'stale', '0', '0'}
elseif verb == 'jobs' then
  jobs()
else
  done()
end
if m.planned() > 0 or #m.happened > 0 then m.flush(true) end
return {'ok', m.us(ended), m.us(lost)}
