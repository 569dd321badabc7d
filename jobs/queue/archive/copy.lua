-- copy: reads what a zone, or the hub, knows at one moment.
--
-- KEYS 1 the zone, or the halt of the hub
-- ARGV keys to copy
-- Returns {the fields of KEYS 1, then three for each key: its name, ms until it expires, DUMP}.
-- Keeps: it changes nothing. Tasks that were submitted since the caller listed the keys are copied,
--      too: no list names a job whose task is missing.

local P, seen, out = string.sub(KEYS[1], 1, -5), {}, {redis.call('HGETALL', KEYS[1])}

local function add(key)
  if seen[key] then return end
  seen[key] = true
  local text = redis.call('DUMP', key)
  if not text then return end
  out[#out + 1] = key
  out[#out + 1] = math.max(redis.call('PTTL', key), 0)
  out[#out + 1] = text
end

if P ~= 'muster:{hub}:' then
  for _, id in ipairs(redis.call('ZRANGE', P .. 'open', 0, -1)) do
    add(P .. 'task:' .. id)
    add(P .. 'held:' .. id)
  end
  for _, name in ipairs(redis.call('SMEMBERS', P .. 'sems')) do add(P .. 'sem:' .. name) end
end
for _, key in ipairs(ARGV) do add(key) end
return out
