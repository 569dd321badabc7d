-- inbox: keeps the events that came from elsewhere, and gives them out one by one.
--
-- KEYS 1 zone of the hub: it gives the prefix of the keys. This script has no prelude in
--      front of it: the hub has no epoch.
-- ARGV 1 take | next | done | tried | turn | trim | feed, then
--      take: id, source, customer, class, record, body, time for which a repetition is
--        recognized (ms), bounds of the source: events a minute, events that wait, bytes that wait
--      next: customer, then sources whose events are passed over
--      done: term, id, state, outcome, events and bytes of a source that are kept
--      tried: term, id, error
--      turn: term, customer
--      trim: source, time before which past events are dropped (µs)
--      feed: term of the duty inner, steps before this one, the bounds of take, number of places,
--        for each its name and the new text (empty: it goes), then for each event
--        id, source, customer, class, record, body
-- Returns take: {ok | again, sequence}, {flood | full, ms to wait, 1 = tell somebody}
--      next: {id, record, body, sequence, tries} or {}
--      done, tried, turn: {ok | deposed | gone, tries}
--      trim: {number of dropped events}
--      feed: {ok, number of events that were new}, {deposed | moved, 0}, or as take a flood
-- Keeps: an id is taken once while it is stored or remembered. An event waits in one queue
--      until done, and nobody but the leader of the duty ends or delays one. The customers with
--      waiting events are those in turns. waiting and bytes count what waits, past what has ended.
--      feed takes events of muster itself and moves the places up to which they were told, in one
--      step: what happened is told once.

local call = redis.call
local P = string.sub(KEYS[1], 1, -5)
local verb = ARGV[1]
local inbox, turns, arrivals = P .. 'inbox', P .. 'turns', P .. 'arrivals'
local classes = {'management', 'result', 'trigger'}

local function kEvent(id) return P .. 'event:' .. id end
local function kQueue(class, customer) return P .. 'inbox:' .. class .. ':' .. customer end
local function kPast(source) return P .. 'past:' .. source end
local function number(field) return tonumber(call('HGET', inbox, field) or '0') end
local function micros()
  local t = call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end
local function text(n) return string.format('%.0f', n) end

local function first(customer)
  for _, class in ipairs(classes) do
    local id = call('ZRANGE', kQueue(class, customer), 0, 0)[1]
    if id then return id end
  end
end

-- drop forgets an event that has ended.
local function drop(source, id)
  local size = tonumber(call('HGET', kEvent(id), 'size') or '0')
  call('DEL', kEvent(id))
  call('ZREM', kPast(source), id)
  call('ZREM', arrivals, id)
  call('HINCRBY', inbox, 'past:' .. source, -size)
end

-- known returns the number of an event that was taken already.
local function known(id)
  return call('HGET', kEvent(id), 'seq') or call('GET', P .. 'seen:' .. id)
end

-- flood returns the answer to so many more events of a source, with so many bytes, if they exceed
-- its bounds: events a minute, events that wait, bytes that wait. quiet: they come again.
local function flood(source, more, size, bounds, now, quiet)
  local minute = math.floor(now / 60000000)
  local last, n = string.match(call('HGET', inbox, 'rate:' .. source) or '', '^(%d+) (%d+)$')
  n = tonumber(last) == minute and tonumber(n) or 0
  local many = n + more > tonumber(bounds[1])
  if many or number('waiting:' .. source) + more > tonumber(bounds[2]) or
      number('bytes:' .. source) + size > tonumber(bounds[3]) then
    if not quiet then call('HINCRBY', inbox, 'flood:' .. source, 1) end
    local told = number('told:' .. source)
    local tell = now - told > 3600000000 and 1 or 0
    if tell == 1 then call('HSET', inbox, 'told:' .. source, text(now)) end
    if many then return {'flood', text((minute + 1) * 60000 - math.floor(now / 1000)), tell} end
    return {'full', '60000', tell}
  end
  call('HSET', inbox, 'rate:' .. source, text(minute) .. ' ' .. (n + more))
end

-- keep stores an event: id, source, customer, class, record and body of it from a place in ARGV on.
local function keep(at, remember, now)
  local id, source, customer, class = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local body = ARGV[at + 5]
  local seq = call('HINCRBY', inbox, 'seq', 1)
  call('HINCRBY', inbox, 'taken:' .. source, 1)
  call('HINCRBY', inbox, 'waiting:' .. source, 1)
  call('HINCRBY', inbox, 'bytes:' .. source, #body)
  call('HSET', kEvent(id), 'record', ARGV[at + 4], 'body', body, 'size', #body, 'seq', seq,
    'state', 'waiting', 'source', source, 'customer', customer, 'class', class)
  call('ZADD', kQueue(class, customer), seq, id)
  call('ZADD', arrivals, seq, id)
  if not call('ZSCORE', turns, customer) then call('ZADD', turns, text(now), customer) end
  call('SET', P .. 'seen:' .. id, seq, 'PX', remember)
  return seq
end

if verb == 'take' then
  local again = known(ARGV[2])
  if again then
    call('HINCRBY', inbox, 'again:' .. ARGV[3], 1)
    return {'again', again}
  end
  local now = micros()
  local no = flood(ARGV[3], 1, #ARGV[7], {ARGV[9], ARGV[10], ARGV[11]}, now)
  return no or {'ok', text(keep(2, ARGV[8], now))}
end

if verb == 'feed' then
  local fed = P .. 'fed'
  local inner = string.match(call('GET', P .. 'leader:inner') or '', '^(%d+) ')
  if inner ~= ARGV[2] then return {'deposed', '0'} end
  if (call('HGET', fed, 'steps') or '0') ~= ARGV[3] then return {'moved', '0'} end
  local first = 9 + 2 * tonumber(ARGV[8])
  local fresh, size, now = {}, 0, micros()
  for at = first, #ARGV, 6 do
    if not known(ARGV[at]) then
      fresh[#fresh + 1], size = at, size + #ARGV[at + 5]
    end
  end
  if #fresh > 0 then
    local no = flood(ARGV[first + 1], #fresh, size, {ARGV[5], ARGV[6], ARGV[7]}, now,
      true)
    if no then return no end
  end
  call('HINCRBY', fed, 'steps', 1)
  for at = 9, first - 1, 2 do
    if ARGV[at + 1] == '' then
      call('HDEL', fed, ARGV[at])
    else
      call('HSET', fed, ARGV[at], ARGV[at + 1])
    end
  end
  for _, at in ipairs(fresh) do keep(at, ARGV[4], now) end
  return {'ok', text(#fresh)}
end

-- other returns the first event of a customer that is not of one of the sources from a place in ARGV
-- on, among the first of each class.
local function other(customer, from)
  local without = {}
  for i = from, #ARGV do without[ARGV[i]] = true end
  for _, class in ipairs(classes) do
    for _, id in ipairs(call('ZRANGE', kQueue(class, customer), 0, 199)) do
      if not without[call('HGET', kEvent(id), 'source')] then return id end
    end
  end
end

if verb == 'next' then
  local find = #ARGV > 2 and other or first
  local id = find(ARGV[2], 3)
  while id and call('EXISTS', kEvent(id)) == 0 do -- somebody else has deleted it
    for _, class in ipairs(classes) do call('ZREM', kQueue(class, ARGV[2]), id) end
    id = find(ARGV[2], 3)
  end
  if not id then return {} end
  local e = call('HMGET', kEvent(id), 'record', 'body', 'seq', 'tries')
  return {id, e[1] or '', e[2] or '', e[3] or '0', e[4] or '0'}
end

if verb == 'trim' then
  local list = call('ZRANGEBYSCORE', kPast(ARGV[2]), '-inf', '(' .. ARGV[3], 'LIMIT', 0, 100)
  for _, id in ipairs(list) do drop(ARGV[2], id) end
  return {text(#list)}
end

local leads = string.match(call('GET', P .. 'leader:events') or '', '^(%d+) ')
if leads ~= ARGV[2] then return {'deposed', '0'} end

if verb == 'turn' then
  if first(ARGV[3]) then
    call('ZADD', turns, text(micros()), ARGV[3])
  else
    call('ZREM', turns, ARGV[3])
  end
  return {'ok', '0'}
end

local id = ARGV[3]
local e = call('HMGET', kEvent(id), 'source', 'customer', 'class', 'size', 'state')
if e[5] ~= 'waiting' then return {'gone', '0'} end

if verb == 'tried' then
  call('HSET', kEvent(id), 'error', ARGV[4])
  return {'ok', text(call('HINCRBY', kEvent(id), 'tries', 1))}
end

local source, customer, size = e[1], e[2], tonumber(e[4])
call('ZREM', kQueue(e[3], customer), id)
if not first(customer) then call('ZREM', turns, customer) end
local now = text(micros())
call('HSET', kEvent(id), 'state', ARGV[4], 'outcome', ARGV[5], 'ended', now)
call('HINCRBY', inbox, 'waiting:' .. source, -1)
call('HINCRBY', inbox, 'bytes:' .. source, -size)
call('HINCRBY', inbox, ARGV[4] .. ':' .. source, 1)
call('HINCRBY', inbox, 'past:' .. source, size)
call('ZADD', kPast(source), now, id)
for _ = 1, 10 do -- a call is short, and the next one goes on
  if call('ZCARD', kPast(source)) <= tonumber(ARGV[6]) and
    number('past:' .. source) <= tonumber(ARGV[7]) then break end
  drop(source, call('ZRANGE', kPast(source), 0, 0)[1])
end
return {'ok', '0'}
