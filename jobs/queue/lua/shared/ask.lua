-- ask: the orders to ask a host how a job ended that ended unknown. It stands behind job.lua inside
-- m.lazy of step and of the script ask.
--
-- An order is the field ask:<host> of the task, in lines:
--   since when, token of the worker that looks (0: none), how often it was handed out
--   who ordered it, and why
--   when it was answered and the answer in a word; empty: it was not
--   the same for people
-- Until it is answered the job is in `asks`, with the time at which a worker may next take it.

m.ASK_TIME = 60000000  -- µs that a worker has to look
m.ASK_KEEP = 600000000 -- µs after which an order that nobody carried out is dropped
m.ASK_TAKES = 3        -- workers that may vanish over it

function m.askField(id) return 'ask:' .. m.hostOf(id) end

-- askOf returns the order to ask about a job, or false.
function m.askOf(id)
  local text = call('HGET', m.kTask .. m.taskOf(id), m.askField(id))
  if not text then return false end
  local at, token, takes, note, answer, words = string.match(text,
    '^(%d+) (%d+) (%d+)\n([^\n]*)\n([^\n]*)\n(.*)$')
  return {at = tonumber(at), token = token, takes = tonumber(takes), note = note, answer = answer, words = words}
end

function m.askForm(a)
  return m.us(a.at) .. ' ' .. a.token .. ' ' .. m.us(a.takes) .. '\n' .. m.line(a.note) .. '\n' ..
    a.answer .. '\n' .. m.line(a.words)
end

-- answerAsk plans the answer to an order.
function m.answerAsk(id, t, a, word, words)
  a.answer, a.words = m.at .. ' ' .. word, words
  local n = #t.put
  t.put[n + 1], t.put[n + 2] = m.askField(id), m.askForm(a)
  m.kept = m.kept + 1
  m.wLast('ZREM', m.kAsks, id)
  m.event('asked', id, '{"how":' .. cjson.encode(word) .. ',"note":' .. cjson.encode(words) .. '}')
end

-- takeWithAsks takes jobs in a zone with orders. In turns of a second the orders come first or
-- last, so that neither many orders nor many jobs keep the others waiting.
function m.takeWithAsks()
  local first = math.floor(m.now / 1000000) % 2 == 0
  if first then m.takeAsks() end
  m.take()
  if not first then m.takeAsks() end
end

-- takeAsks hands out due orders. They hold nothing: a worker with an order only looks.
function m.takeAsks()
  local room = m.want - #m.grants
  if room < 1 then return end
  local ids = call('ZRANGEBYSCORE', m.kAsks, '-inf', m.at, 'LIMIT', '0', m.us(room))
  m.readJobs(ids)
  for _, id in ipairs(ids) do m.takeAsk(id) end
  if not ids[1] and call('EXISTS', m.kAsks) == 0 then m.w('HDEL', m.kZone, 'asks') end
end

function m.takeAsk(id)
  local t, j = m.task(m.taskOf(id)), m.job(id)
  local a = t and m.askOf(id)
  if not a or a.answer ~= '' or j.state ~= 'ended' then
    m.w('ZREM', m.kAsks, id)
  elseif j.outcome ~= 'unknown' then
    m.answerAsk(id, t, a, 'known', 'it ended ' .. j.outcome)
  elseif a.takes >= m.ASK_TAKES then
    m.answerAsk(id, t, a, 'nobody', m.us(a.takes) .. ' workers were to look, and none of them answered')
  elseif a.at + m.ASK_KEEP < m.now then
    m.answerAsk(id, t, a, 'nobody', 'no worker came to look within ' .. m.us(m.ASK_KEEP / m.MINUTE) .. ' minutes')
  else
    m.grantAsk(id, t, j, a)
  end
end

-- grantAsk hands an order out. Its token is newer than the token of any attempt so far: a host that
-- reports that a step never began refuses older tokens from then on. That would hit another job
-- which has the host; if there is one, the worker may write nothing there: peek.
function m.grantAsk(id, t, j, a)
  local host = m.hostOf(id)
  local lock = m.locked(host)
  local mode = (not lock or lock == (j.token or '0') .. ' ' .. id) and 'ask' or 'peek'
  m.lastToken = math.max(m.lastToken + 1, m.now)
  m.tokenText = m.us(m.lastToken)
  a.token, a.takes = m.tokenText, a.takes + 1
  m.w('ZADD', m.kAsks, m.us(m.now + m.ASK_TIME + 5000000), id)
  m.w('HSET', t.key, m.askField(id), m.askForm(a))
  m.granted(t.id, host, table.concat({id, a.token, mode, j.attempt, j.tries, j.probes, j.crashes,
    j.step, m.us(j.due), m.us(m.ASK_TIME), '0', '', '', j.saved}, '\t'))
end
