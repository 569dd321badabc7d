-- order: one call of a reordering of the due jobs in queue. A caller that gets the lock reads all
-- due jobs page by page from the back, which counts jobs per task, then gives them new scores chunk
-- by chunk, again from the back, and calls done. package jobs decides where a job goes.
--
-- KEYS 1 zone
-- ARGV 1 lock | page | chunk | done  2 token of the lock  3 lock in ms
--      lock:  4 who, for people
--      page:  4 when the lock was got, µs  5 offset from the back  6 jobs (1..1000)
--      chunk: 4 as page  5 oldest score at the lock  6 jobs left where they are, so
--             far  7 jobs to read (1..200)  8.. ids, then their old scores as they were
--             read, then their new ones (0..200 of each)
--      done:  4 as page  5 who  6 jobs moved  7 cool-down at least, µs
--             8 done | met | stopped  9 changes at the lock
-- Returns lock:  {go, now, oldest score, changes so far} | {busy, now, µs to wait} |
--                {calm, now}: nothing is due, there is one task only, or none came or
--                went since the last time
--         page:  {ok, now, jobs, {task, jobs of it …}}
--         chunk: {ok | met, now, moved, left where they are, {id, score …} to continue with}
--         done:  {ok, now, µs to wait}
--         all but lock also {lost, now}: another caller has the lock. {absent, now}: no key zone
-- Keeps: a job is moved only if it is in queue with the score that was read, and to a score
--      below the oldest. So each prefix is a valid queue, and a job that was taken, held,
--      ended or released meanwhile is left alone. Nobody waits for the lock.

local op, token = ARGV[1], ARGV[2]

m.begin()
if not m.zone.run then return {'absent', m.at} end

local function lock()
  local taken = call('PTTL', m.kOverload)
  if taken > 0 then return {'busy', m.at, m.us(taken * 1000)} end
  local first = call('ZRANGE', m.kQueue, '0', '0', 'WITHSCORES')
  local last = call('ZREVRANGEBYSCORE', m.kQueue, m.at, '-inf', 'WITHSCORES', 'LIMIT', '0', '1')
  local v = call('HMGET', m.kZone, 'walked', 'changes', 'changesSeen')
  -- Jobs that were reordered are older than that walk, and so are the jobs that it left. changes
  -- counts tasks that ended, and jobs that returned with an older score.
  local came = last[2] and tonumber(last[2]) >= m.num(v[1])
  local went = last[2] and m.num(v[2]) ~= m.num(v[3])
  if not (came or went) or call('ZCARD', m.kOpen) < 2 or m.zone.halted or m.zone.paused or
      m.zone.shut then return {'calm', m.at} end
  m.w('SET', m.kOverload, token, 'NX', 'PX', ARGV[3])
  m.event('reorder', 'zone', '{"node":' .. cjson.encode(ARGV[4]) .. ',"due":' ..
    m.us(call('ZCOUNT', m.kQueue, '-inf', m.at)) .. '}')
  m.flush()
  return {'go', m.at, m.us(tonumber(first[2])), m.us(m.num(v[2]))}
end

-- later returns how many jobs are behind those that were due at the lock.
local function later() return call('ZCOUNT', m.kQueue, '(' .. ARGV[4], '+inf') end

local function page()
  local from, size = later() + tonumber(ARGV[5]), tonumber(ARGV[6])
  local ids = call('ZREVRANGE', m.kQueue, m.us(from), m.us(from + size - 1))
  local counts, out = {}, {}
  for _, id in ipairs(ids) do
    local task = m.taskOf(id)
    counts[task] = (counts[task] or 0) + 1
  end
  for task, n in pairs(counts) do
    out[#out + 1] = task
    out[#out + 1] = n
  end
  m.w('PEXPIRE', m.kOverload, ARGV[3])
  m.flush()
  return {'ok', m.at, #ids, out}
end

-- compare plans the moves of a chunk. It returns their number, how many jobs stay among those due
-- at the lock, and whether a worker took one.
local function compare()
  local n, oldest, latest = (#ARGV - 7) / 3, tonumber(ARGV[5]), tonumber(ARGV[4])
  if n == 0 then return 0, 0, false end
  local scores = call('ZMSCORE', m.kQueue, unpack(ARGV, 8, 7 + n))
  local move, stay, met = {'ZADD', m.kQueue, 'XX'}, 0, false
  for k = 1, n do
    local score = scores[k]
    if score == ARGV[7 + n + k] then
      move[#move + 1] = ARGV[7 + n + n + k]
      move[#move + 1] = ARGV[7 + k]
    elseif score then
      if tonumber(score) >= oldest and tonumber(score) <= latest then stay = stay + 1 end
    elseif m.job(ARGV[7 + k]).attempt > 0 then
      met = true
      break
    end
  end
  if #move > 3 then m.plan[#m.plan + 1] = move end
  return (#move - 3) / 2, stay, met
end

local function chunk()
  local moved, stay, met = compare()
  local rest = {}
  if not met then
    -- This reads before the moves, so the jobs that will move are still there.
    local from = later() + tonumber(ARGV[6]) + stay + moved
    rest = call('ZREVRANGE', m.kQueue, m.us(from), m.us(from + tonumber(ARGV[7]) - 1), 'WITHSCORES')
    while #rest > 0 and tonumber(rest[#rest]) < tonumber(ARGV[5]) do
      rest[#rest], rest[#rest - 1] = nil, nil -- an earlier call moved it
    end
  end
  m.w('PEXPIRE', m.kOverload, ARGV[3])
  m.flush()
  return {met and 'met' or 'ok', m.at, moved, stay, rest}
end

local function done()
  local took = m.now - tonumber(ARGV[4])
  local cool = math.max(tonumber(ARGV[7]), 10 * took)
  m.w('SET', m.kOverload, 'cool', 'PX', m.us(math.ceil(cool / 1000)))
  local detail = '{"node":' .. cjson.encode(ARGV[5]) .. ',"moved":' .. ARGV[6] .. ',"took":' ..
    m.us(took) .. ',"end":' .. cjson.encode(ARGV[8]) .. '}'
  -- A walk that moved nothing is not shown to people.
  if ARGV[6] ~= '0' then m.w('HSET', m.kZone, 'reordered', m.at .. ' ' .. detail) end
  if ARGV[8] ~= 'stopped' then
    m.w('HSET', m.kZone, 'walked', ARGV[4], 'changesSeen', ARGV[9])
  end
  m.event('reordered', 'zone', detail)
  m.flush()
  return {'ok', m.at, m.us(cool)}
end

if op == 'lock' then return lock() end
if call('GET', m.kOverload) ~= token then return {'lost', m.at} end
if op == 'page' then return page() end
if op == 'chunk' then return chunk() end
return done()
