-- ask: orders that a host is asked how a job ended that ended unknown, and stores the answer of the
-- worker that looked. Nothing else changes the end of a job, and only the end unknown changes.
--
-- KEYS 1 zone
-- ARGV 1 verb  2 job
--      order     3 = who and why, for people
--      answer    3 = token of the order, as it was handed out; 4 = the answer in a word (jobs/ask.go);
--                5 = the same for people; 6 = token of the attempt that began the step, as the
--                host reports it, '' = it does not; 7 = 1: nothing of the step runs there any
--                more; then, if the end of the job is known now: 8 outcome  9 class  10 exit
--                11 error  12 output (a record, see output.go)  13 note  14 the proof of the
--                node behind ~~ ('' or missing: none)
-- Returns order: {ok | already (the order waits for a worker) | absent (the zone does not know the job,
--      maybe because it ended a day ago) | open (it has not ended) | known, state or outcome}
--      answer: {ok | stale (another worker has the order, or none) | known | later (the host reports
--      an attempt that came after the one which ended), outcome}
-- Keeps: only the end unknown changes, once, with the counters of its task and nothing else: a
--      frozen group stays frozen, the zone keeps its count of the first ends, and no job runs
--      again. Repeating a call changes nothing. The lock that the job left behind is released
--      if nothing of the job runs any more.
--
-- An order is the field ask:<host> of its task: its time, the token of the worker that looks and
-- how often the order was handed out, the operator, and the answer. Until the answer comes the job
-- is in the set `asks`, and the field `asks` of zone says that there may be some, so that takes
-- read nothing if there are none. step hands orders out as grants of mode `ask`, with a new token
-- and no lock, at most as many as there is room for, alternating each second between before and
-- behind jobs. An order is due again after 65 s. If another job has the host the mode is `peek`. An
-- answer counts only with the token of the order, and the token in the host's record is compared
-- with the token of the attempt which ended.

local verb, id, more = ARGV[1], ARGV[2], ARGV[3]

m.begin()
if not m.zone.run then return {'absent', ''} end
local t, j = m.task(m.taskOf(id)), m.jobToEnd(id)
if not t then return {'absent', ''} end
if not j.state then return {'open', 'queued'} end
local a = m.askOf(id)

local function order()
  if j.state ~= 'ended' then return {'open', j.state} end
  if j.outcome ~= 'unknown' then return {'known', j.outcome} end
  if a and a.answer == '' and call('ZSCORE', m.kAsks, id) then return {'already', ''} end
  m.w('HSET', t.key, m.askField(id), m.askForm({at = m.now, token = '0', takes = 0, note = more, answer = '', words = ''}))
  m.w('HSET', m.kZone, 'asks', '1')
  m.w('ZADD', m.kAsks, m.at, id)
  m.w('PUBLISH', m.kWake, '')
  m.event('ask', id, '{"note":' .. cjson.encode(more) .. '}')
  return {'ok', ''}
end

-- counted moves the job from one counter of its task to another, together with its record: a script
-- that broke off in between would leave a task whose jobs do not add up.
local function counted(outcome)
  local n = #t.put
  t.put[n + 1], t.put[n + 2] = 'o:unknown', m.us(m.num(call('HGET', t.key, 'o:unknown')) - 1)
  t.put[n + 3], t.put[n + 4] = 'o:' .. outcome, m.us(m.num(call('HGET', t.key, 'o:' .. outcome)) + 1)
end

-- ruled applies the new end to the rule of the task, and to the proof of its group.
local function ruled(outcome)
  if not t.guard then return end
  local r = m.rule(t.id, t)
  if r and not r.counts[outcome] then
    local fails = {}
    for _, one in ipairs(r.fails) do
      if string.match(one, ':(.*)$') ~= m.hostOf(id) then fails[#fails + 1] = one end
    end
    local n = #t.put
    t.put[n + 1], t.put[n + 2] = 'fails', table.concat(fails, ' ')
  end
  local group = m.provesGroup(id, t)
  local before = group and call('HGET', t.key, 'unproven:' .. group)
  if before ~= m.hostOf(id) .. ' of its group ended unknown' then return end
  if m.FAILS_PROOF[outcome] then
    m.proveNone(id, t, outcome)
  else
    m.wAfter('HDEL', t.key, 'unproven:' .. group)
  end
end

-- settle replaces unknown by the end that is known now. The time of the end stays.
local function settle(outcome, class, exit, err)
  local head, at, spent, said, note = string.match(j.rest,
    '^([^\n]*\n[^\n]*\n[^\n]*\n)(%d+) %S+ %S+ [^+]*%+(%S*) ?([^\n]*)\n?(.*)$')
  spent = string.match(spent, '^[^~]*') .. (ARGV[14] or '') -- the former end was proven by itself
  note = ARGV[13] ~= '' and ARGV[13] or note
  note = (note ~= '' and note .. '; ' or '') .. 'settled by the record of its host, ' .. a.note ..
    (said ~= '' and '; it had ended unknown: ' .. said or '')
  counted(outcome)
  ruled(outcome)
  m.put(id, 'ended ' .. (j.lost and '1 0 ' or '0 0 ') .. (j.token or '0') .. head .. at .. ' ' .. outcome .. ' ' ..
    (class ~= '' and class or '-') .. ' ' .. (exit ~= '' and exit or '-') .. '+' .. spent .. ' ' ..
    m.line(err) .. '\n' .. m.line(note))
  if ARGV[12] ~= '' then
    m.w('XADD', m.kOut .. id, 'MAXLEN', '~', '1000', '*', 'said', ARGV[12])
    m.w('PEXPIRE', m.kOut .. id, m.DAY)
  end
  m.event('settle', id, '{"outcome":"' .. outcome .. '"' .. (exit ~= '' and ',"exit":' .. exit or '') ..
    (err ~= '' and ',"error":' .. cjson.encode(err) or '') .. ',"how":' .. cjson.encode(note) ..
    ',"ended":' .. at .. '}')
end

local function answer()
  if not a or a.answer ~= '' or a.token ~= more then return {'stale', ''} end
  if j.state ~= 'ended' or j.outcome ~= 'unknown' then
    m.answerAsk(id, t, a, 'known', 'it ended ' .. (j.outcome or j.state))
    return {'known', j.outcome or j.state}
  end
  local word, words, began, over, outcome = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
  -- There is no token of an attempt if Redis had forgotten the job.
  if began ~= '' and j.token and m.num(began) > m.num(j.token) then
    m.answerAsk(id, t, a, 'later', 'the host tells of an attempt that came after the one which ended unknown')
    return {'later', ''}
  end
  if outcome ~= '' then settle(outcome, ARGV[9], ARGV[10], ARGV[11]) end
  if over == '1' then m.unlock(id, j, t) end
  m.answerAsk(id, t, a, word, words)
  return {'ok', outcome}
end

local said = verb == 'order' and order() or answer()
if m.planned() > 0 or #m.happened > 0 then m.flush(true) end
return said
