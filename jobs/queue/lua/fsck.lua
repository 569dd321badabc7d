-- fsck: compares what a zone stores in several places, one chunk at a time, and corrects
-- differences. Each call sees one moment, so its findings are true even while others work; only
-- sums over many chunks need a second look.
--
-- KEYS 1 zone
-- ARGV 1 verb  2 object  3 number  4 mend (1 or '')  5 hosts  6 who mends and why, for
--      people, or ''
--      chunk     object = task, number = chunk of its hosts
--      bury      object = task, 5 = hosts whose jobs are in no list and left no trace:
--                they end unknown
--      counters  object = task, number = jobs that run, 5 = `running` and `done` at the
--                time of the count: nothing is done if they changed
--      sem       object = name of a semaphore, 5 = some of its holders
--      page      object = queue | again | held:<task>, number = rank of the first
--      open      number = rank of the first: removes tasks from the list of open tasks
--                if all their jobs have ended, or nothing of them exists
-- Returns {ok | absent, {kind, object, detail, mended …}, {number …}, {text …}}
--      chunk: {hosts, open, running, done, counted total, done, running, 1 if committed},
--      {outcome, how many, …, '-', host that left no trace …}; page: {entries}, {task …};
--      open: {entries, of them taken away}
-- Keeps: a call corrects nothing that another script could be in the middle of, because scripts
--      do not overlap. A job that may or may not have run ends unknown.

local verb, object, number, mend = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local CHUNK = 200

m.begin()
if not m.zone.run then return {'absent', {}, {}, {}} end
local found, numbers, texts = {}, {}, {}

-- find notes a difference; it returns true if the call must correct it.
local function find(kind, what, detail, only)
  local mended = mend and not only
  for _, v in ipairs({kind, what, detail, mended and '1' or '0'}) do found[#found + 1] = v end
  return mended
end

local function keep(id, where, score)
  m.w('ZADD', where, score, id)
  for _, key in ipairs({m.kQueue, m.kAgain, m.kHeld .. m.taskOf(id)}) do
    if key ~= where then m.w('ZREM', key, id) end
  end
end

local function forget(id)
  for _, key in ipairs({m.kQueue, m.kAgain, m.kHeld .. m.taskOf(id)}) do m.w('ZREM', key, id) end
end

-- waiting checks a job that is in exactly one list.
local function waiting(id, j, t, again)
  if j.state ~= 'running' then return end
  local host = m.hostOf(id)
  local lock = m.locked(host)
  if not again then
    if find('misplaced', id, 'it runs') then keep(id, m.kAgain, m.at) end
  elseif m.num(again) > m.now + t.timeout + m.lockDelay(t.timeout) + m.MINUTE and not lock then
    if find('far', id, 'its host is not locked any more') then keep(id, m.kAgain, m.at) end
  end
  if lock and lock ~= j.token .. ' ' .. id then
    find('lock', id, 'its host is locked by ' .. lock, true)
  end
end

local function nowhere(id, j, t)
  if find('nowhere', id, 'state ' .. j.state) then
    if j.state == 'running' then m.count(t, 'running', -1) end
    m.w('ZADD', m.kAgain, m.at, id)
    j.state = 'lost'
    m.keep(id, j)
  end
end

local verbs = {}

function verbs.chunk()
  local t = m.task(object)
  if not t then return false end
  local v = call('HMGET', m.kTask .. object, 'committed', 'running')
  local hosts, open, running, done, outcomes, traceless = 0, 0, 0, 0, {}, {}
  local list = call('HGET', m.kTask .. object, 'hosts:' .. number) or ''
  local names, ids, inQueue, inAgain, inHeld = m.places(object, list, 0, CHUNK)
  m.readJobs(ids)
  for i, host in ipairs(names) do
    local id, q, a, h = ids[i], inQueue[i], inAgain[i], inHeld[i]
    local j = m.job(id)
    local places = (q and 1 or 0) + (a and 1 or 0) + (h and 1 or 0)
    hosts = hosts + 1
    if j.state == 'ended' then
      done = done + 1
      outcomes[j.outcome or '?'] = (outcomes[j.outcome or '?'] or 0) + 1
      if places > 0 and find('ended', id, 'it is ' .. (j.outcome or '?')) then forget(id) end
    elseif places == 0 and j.state then
      open = open + 1
      nowhere(id, j, t)
    elseif places == 0 then
      traceless[#traceless + 1] = host
    else
      open = open + 1
      if places > 1 and find('twice', id, m.us(places) .. ' places') then
        local held = h and (t.paused or not v[1]) and not j.state
        keep(id, (a or j.state) and m.kAgain or held and m.kHeld .. object or m.kQueue,
          m.us(m.num(a or q or h)))
      elseif places == 1 then
        waiting(id, j, t, a)
      end
    end
    if j.state == 'running' and (places > 0 or not mend) then running = running + 1 end
  end
  numbers = {hosts, open, running, done, t.total, t.done, m.num(v[2]), v[1] and 1 or 0}
  for name, n in pairs(outcomes) do
    texts[#texts + 1] = name
    texts[#texts + 1] = m.us(n)
  end
  texts[#texts + 1] = '-'
  for _, host in ipairs(traceless) do texts[#texts + 1] = host end
  return true
end

function verbs.bury()
  local t = m.task(object)
  if not t then return false end
  for host in string.gmatch(ARGV[5], '[^\n]+') do
    local id = object .. ':' .. host
    local waits = call('ZSCORE', m.kQueue, id) or call('ZSCORE', m.kAgain, id) or
      call('ZSCORE', m.kHeld .. object, id)
    if not waits and not m.record(id) and
      find('nowhere', id, 'it left no trace') then
      m.finish(id, m.freshJob(), {outcome = 'unknown', err = 'the queue had lost it'})
    end
  end
  return true
end

function verbs.counters()
  local t = m.task(object)
  local is = call('HMGET', m.kTask .. object, 'running', 'done')
  if not t or m.us(m.num(is[1])) .. ' ' .. m.us(m.num(is[2])) ~= ARGV[5] then return true end
  if find('count', object, 'running was ' .. m.us(m.num(is[1])) .. ', there are ' .. number) then
    m.w('HSET', m.kTask .. object, 'running', number)
  end
  return true
end

function verbs.sem()
  local s = m.sem(object)
  local ids = {}
  for id in string.gmatch(ARGV[5], '[^\n]+') do
    local holds = id ~= m.FROZEN and m.holds(id, object)
    local state = holds and m.job(id).state
    if holds then ids[#ids + 1] = id end
    if holds and (not state or state == 'ended') and
      find('holder', object, id .. (state and ' has ended' or ' does not exist')) and
      m.drop(id, object) then
      m.wakeNext(object)
    end
  end
  if s.holders == 0 and #ids == 0 and call('SISMEMBER', m.kSems, object) == 1 and
    find('index', object, 'nobody holds it') then
    m.w('SREM', m.kSems, object)
  end
  local group = string.sub(object, 1, 6) == 'group/'
  local alone = not group or s.holders < 2 or m.holds(m.FROZEN, object)
  if not alone and find('over limit', object, m.us(s.holders) .. ' jobs of the group run') then
    for i = 1, #ids do
      if m.job(ids[i]).state then
        m.doubt(ids[i], {object})
        break
      end
    end
  elseif not group and s.holders > s.max and string.sub(object, 1, 5) ~= 'rule:' then
    find('over limit', object, m.us(s.holders) .. ' holders, ' .. m.us(s.max) .. ' places', true)
  end
  return true
end

function verbs.page()
  local ids = call('ZRANGE', P .. object, number, m.us(tonumber(number) + CHUNK - 1))
  local seen = {}
  for _, id in ipairs(ids) do
    local task = m.taskOf(id)
    if not m.task(task) then
      if find('orphan', id, 'its task is gone') then m.w('ZREM', P .. object, id) end
    elseif not seen[task] then
      seen[task] = true
      texts[#texts + 1] = task
    end
  end
  numbers = {#ids}
  return true
end

-- open closes tasks whose last job ended in a script that broke off after that.
function verbs.open()
  local ids, gone = call('ZRANGE', m.kOpen, number, m.us(tonumber(number) + CHUNK - 1)), 0
  for _, id in ipairs(ids) do
    local t = m.task(id)
    if not t then
      if find('open', id, 'the task is gone') then
        m.w('ZREM', m.kOpen, id)
        m.w('SREM', m.kRolling, id)
        gone = gone + 1
      end
    elseif t.done >= t.total and find('open', id, 'all its jobs have ended') then
      m.reopen(t)
      if not t.open then -- it was closed, but its name came back on the list
        m.w('ZREM', m.kOpen, id)
        m.w('SREM', m.kRolling, id)
      end
      gone = gone + 1
    end
  end
  numbers = {#ids, gone}
  return true
end

if not verbs[verb]() then return {'ok', {}, {}, {}} end
for i = 1, #found, 4 do
  if found[i + 3] == '1' then
    local note = found[i] .. ': ' .. found[i + 2] .. (ARGV[6] ~= '' and '; ' .. ARGV[6] or '')
    m.event('mend', found[i + 1], '{"note":' .. cjson.encode(note) .. '}')
  end
end
if m.planned() > 0 or #m.happened > 0 then m.flush(true) end
for i = 1, #numbers do numbers[i] = m.us(numbers[i]) end
return {'ok', found, numbers, texts}
