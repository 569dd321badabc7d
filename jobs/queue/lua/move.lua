-- move: commits, pauses or resumes a task. The first call sets one flag, which
-- takes obey at once; then the jobs are moved in chunks, by any server.
--
-- KEYS 1 zone
-- ARGV 1 task  2 commit | pause | resume  3 jobs to move at most (1..500)
--      4 who and why, for people
--      5 pause only: number of the chunk of hosts whose jobs are moved
-- Returns {ok, jobs left to move} | {incomplete, jobs held} | {absent, 0} |
--      {ended, 0}. pause counts what it moved instead.
-- Keeps: a job is moved by adding it to its new place before it leaves the old;
--      a job without hash has never started and belongs to queue.

local id, what, limit, note = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

begin()
local t = zone.run and task(id)
if not t then return {'absent', 0} end
if t.done >= t.total then return {'ended', 0} end

-- release moves held jobs back into the queue or, if they had started, again.
local function release()
  local jobs = call('ZRANGE', kHeld(id), 0, limit - 1, 'WITHSCORES')
  if #jobs == 0 then return end
  local queue, again, moved = {'ZADD', kQueue}, {'ZADD', kAgain}, {'ZREM', kHeld(id)}
  for i = 1, #jobs, 2 do
    local to = what == 'resume' and call('EXISTS', kJob(jobs[i])) == 1 and again or queue
    to[#to + 1] = us(math.max(num(jobs[i + 1]), t.due))
    to[#to + 1] = jobs[i]
    moved[#moved + 1] = jobs[i]
  end
  if #queue > 2 then w(unpack(queue)) end
  if #again > 2 then w(unpack(again)) end
  w(unpack(moved))
  w('PUBLISH', kWake, '')
end

local function commit()
  if not t.committed then
    local held = call('ZCARD', kHeld(id))
    if held ~= t.total then return {'incomplete', held} end
    local v = call('HMGET', kTask(id), 'at', 'expire')
    t.due = math.max(now, num(v[1]))
    w('PERSIST', kTask(id))
    w('PERSIST', kHeld(id))
    w('HSET', kTask(id), 'committed', us(now), 'due', us(t.due), 'expires', us(t.due + num(v[2])))
    event('commit', id, '{"jobs":' .. us(held) .. '}')
  end
  if not t.paused then release() end
end

local function pause()
  if not t.paused then
    w('HSET', kTask(id), 'paused', us(now))
    event('pause', id, '{"note":' .. cjson.encode(note) .. '}')
  end
  local hosts = call('HGET', kTask(id), 'hosts:' .. ARGV[5]) or ''
  local moved = 0
  for host in string.gmatch(hosts, '[^\n]+') do
    local job = id .. ':' .. host
    local score = call('ZSCORE', kQueue, job)
    if score and moved < limit then
      w('ZADD', kHeld(id), us(tonumber(score)), job)
      w('ZREM', kQueue, job)
      moved = moved + 1
    end
  end
  flush()
  return {'ok', moved}
end

local function resume()
  if t.paused then
    -- The pause does not count against the expiry.
    t.due = math.max(t.due, now)
    w('HDEL', kTask(id), 'paused')
    w('HSET', kTask(id), 'due', us(t.due), 'expires', us(t.expires + now - num(t.paused)))
    event('resume', id, '{"note":' .. cjson.encode(note) .. '}')
  end
  if t.committed then release() end
end

local answer
if what == 'commit' then
  answer = commit()
elseif what == 'pause' then
  answer = pause()
else
  answer = resume()
end
if answer then return answer end
flush()
return {'ok', call('ZCARD', kHeld(id))}
