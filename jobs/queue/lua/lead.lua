-- lead: gives a duty to one server, for a lease, under the number of a term.
--
-- KEYS 1 zone of the hub: it gives the prefix of the keys. This script has no prelude in
--      front of it: the hub has no epoch.
-- ARGV 1 lead | leave  2 duty  3 who asks  4 the term that the caller holds, or 0
--      5 lead: lease, ms  6 the form that the caller can read (form.go)
-- Returns {mine | other | none, number of the term, who has it}
-- Keeps: a term is given to one caller. The terms of a duty only grow; terms that Redis
--      forgot were taken from its clock, so they are less than its clock is.

local call = redis.call
local P = string.sub(KEYS[1], 1, -5)
local verb, duty, who, held = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local leader, terms = P .. 'leader:' .. duty, P .. 'terms'

local number, name = string.match(call('GET', leader) or '', '^(%d+) (.*)$')

if verb == 'leave' then
  if number ~= held then return {'other', number or '0', name or ''} end
  call('DEL', leader)
  return {'none', '0', ''}
end
local form = call('HMGET', P .. 'form', 'form', 'form_by')
if (tonumber(form[1] or '') or 0) > tonumber(ARGV[6]) then -- a newer muster does the duties
  error('muster-form hub ' .. form[1] .. ' ' .. (form[2] or ''))
end
if number and number ~= held then return {'other', number, name} end
if not number then
  local t = call('TIME')
  local last = tonumber(call('HGET', terms, duty) or '0')
  number = string.format('%.0f', math.max(last + 1, tonumber(t[1]) * 1000000 + tonumber(t[2])))
  call('HSET', terms, duty, number)
end
call('SET', leader, number .. ' ' .. who, 'PX', ARGV[5])
return {'mine', number, who}
