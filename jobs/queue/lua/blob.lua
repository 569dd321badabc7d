-- blob: the list of stored contents. An entry is the µs of its last use and JSON; the entry of a
-- content that is being removed is "-" and JSON. The contents themselves are in other keys, which
-- no script touches.
--
-- KEYS 1 zone of the hub
-- ARGV 1 verb, 2 name, and
--      add   name = sum, 3 JSON, 4 name of the reservation that ends with it
--      pin   name = task, 3.. sums: marks all of them as used now, and as needed by the
--            task; with an empty task only as used
--      drop  name = sum, 3 its entry as the caller knows it: it will be removed
-- Returns ok; add: present, or going if it is being removed; pin: the first sum that is
-- missing; drop: changed
-- Keeps: with any answer but ok, nothing was written.
--
-- Contents that are too large for a task are in the hub, in keys of 512 KiB each, which
-- expire after a day until all of them came. The name of a content is its SHA-256, which is
-- computed anew at each read. A task pins its contents before it is put, in the call that
-- also notes the use. A removal compares the entry with the one that it has looked at, so
-- it meets either the pin or nobody. It marks the entry, deletes the keys, then the entry;
-- any server completes it. blobs.max bounds all contents together: they take memory and
-- room in the append-only file like everything else.

local verb, name = ARGV[1], ARGV[2]
local blobs, pins = P .. 'blobs', P .. 'pins'
local verbs = {}

m.begin()

local function going(entry) return string.sub(entry, 1, 1) == '-' end

function verbs.add()
  local entry = call('HGET', blobs, name)
  if entry then return going(entry) and 'going' or 'there' end
  m.w('HSET', blobs, name, m.at .. ' ' .. ARGV[3])
  m.w('HDEL', blobs, ARGV[4])
  return 'ok'
end

function verbs.pin()
  for i = 3, #ARGV do
    local entry = call('HGET', blobs, ARGV[i])
    if not entry or going(entry) then return ARGV[i] end
    m.w('HSET', blobs, ARGV[i], m.at .. string.match(entry, ' .*'))
    if name ~= '' then m.w('HSET', pins, ARGV[i] .. ' ' .. name, m.at) end
  end
  return 'ok'
end

function verbs.drop()
  if call('HGET', blobs, name) ~= ARGV[3] or going(ARGV[3]) then return 'changed' end
  m.w('HSET', blobs, name, '-' .. string.match(ARGV[3], ' .*'))
  return 'ok'
end

local answer = verbs[verb]()
if answer == 'ok' then m.flush() end
return answer
