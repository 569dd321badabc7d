-- put: one chunk of a task's hosts. The jobs are held until move commits the task, so no job of a
-- half submit runs. Repeating a chunk changes nothing; the same submit with the same task id
-- completes what an earlier one began.
--
-- KEYS 1 zone
-- ARGV 1 task  2 fingerprint of the submit  3 number of the chunk, from 0
--      4 when to run, µs ('' = at once), or one time for each host, separated by blanks (0 =
--        the task's time); for a task with waves the waves of the hosts, in their order:
--        wave*hosts,…  5 hosts, separated by newlines (1..500)
--      6.. chunk 0 only: fields and values of the task
-- Returns {ok, jobs held so far} | committed | cancelled | conflict (another submit has this
--      id) | header (chunk 0 must come first) | absent (no key zone)
-- Keeps: held:<task> and task:<id> expire together while not committed. A job that was
--      cancelled alone meanwhile stays ended, and a job that runs, because a failover
--      forgot an earlier commit, stays where it is. A job with a time of its own has a
--      record, with due and later, and so will wait in again.

local id, print, chunk, at = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

m.beginZone()
if not m.zone.run then return {'absent', 0} end
local v = call('HMGET', m.kTask .. id, 'print', 'committed', 'cancel', 'done', 'started', 'at')
if v[1] and v[1] ~= print then return {'conflict', 0} end
if v[2] then return {'committed', 0} end
if v[3] then return {'cancelled', 0} end
if not v[1] and chunk ~= '0' then return {'header', 0} end

local some = m.num(v[4]) > 0 or v[5]

local function elsewhere(jobID)
  if not some then return false end
  local record = m.record(jobID)
  return record and sub(record, 1, 7) ~= 'queued ' or call('ZSCORE', m.kQueue, jobID) or
    call('ZSCORE', m.kAgain, jobID)
end

local add = {'ZADD', m.kHeld .. id, 'NX'}
local set = {'HSET', m.kTask .. id, 'print', print, 'hosts:' .. chunk, ARGV[5]}
local base, times, own = m.num(v[6]), {}, false
for i = 6, #ARGV, 2 do
  if ARGV[i] == 'at' then base = tonumber(ARGV[i + 1]) end
end
base = math.max(base, m.now)
if string.find(at, ' ', 1, true) then
  own = true
  for one in string.gmatch(at, '%d+') do times[#times + 1] = one end
end
local waves = {} -- by position
for wave, hosts in string.gmatch(at, '(%d+)%*(%d+)') do
  for _ = 1, tonumber(hosts) do waves[#waves + 1] = wave end
end
local n = 0
for host in string.gmatch(ARGV[5], '[^\n]+') do
  local jobID = id .. ':' .. host
  n = n + 1
  if not elsewhere(jobID) then
    local due = own and times[n] ~= '0' and times[n]
    add[#add + 1] = waves[n] or due or own and '0' or at == '' and '0' or at
    add[#add + 1] = jobID
    if due then
      local j = m.freshJob()
      j.state, j.due = 'queued', tonumber(due)
      j.later = math.max(j.due - base, 0)
      set[#set + 1], set[#set + 2] = sub(jobID, 11), m.form(j)
    end
  end
end
for i = 6, #ARGV do
  set[#set + 1] = ARGV[i]
  if ARGV[i] == 'timeout' and tonumber(ARGV[i + 1]) > m.zone.longest and i % 2 == 0 then
    m.w('HSET', m.kZone, 'longest', ARGV[i + 1])
  end
end
m.w(unpack(set))
m.w('PEXPIRE', m.kTask .. id, m.DAY)
if #add > 3 then m.w(unpack(add)) end
m.w('PEXPIRE', m.kHeld .. id, m.DAY)
m.event('put', id, '{"chunk":' .. chunk .. ',"jobs":' .. m.us((#add - 3) / 2) .. '}')
m.flush()
return {'ok', call('ZCARD', m.kHeld .. id)}
