-- speak: keeps what the hosts of running jobs say, for those who listen. It is a
-- preview: the result of the attempt brings all that is kept, and takes its place.
--
-- KEYS 1 zone
-- ARGV 1 number of jobs, then 5 each: id, token, end (bytes that the host has said
--      in this attempt), ends of earlier entries to drop, separated by blanks, data
-- Returns {now, id …} of those whose attempt has ended, or is not the latest;
--      {absent, now} if there is no key zone
-- Keeps: an entry of a running attempt in out:<id> has the id <token>-<end>; the
--      field live of its job is the token of the attempt that has some.

m.begin()
if not m.zone.run then return {'absent', m.at} end

local stale = {m.at}
for i = 2, 1 + 5 * tonumber(ARGV[1]), 5 do
  local id, token, out = ARGV[i], ARGV[i + 1], m.kOut .. ARGV[i]
  local v = call('HMGET', m.kJob .. id, 'state', 'token', 'live')
  if v[1] ~= 'running' or v[2] ~= token then
    stale[#stale + 1] = id
  else
    if v[3] ~= token then m.w('HSET', m.kJob .. id, 'live', token) end
    local drop = {'XDEL', out}
    for done in string.gmatch(ARGV[i + 3], '%S+') do drop[#drop + 1] = token .. '-' .. done end
    if #drop > 2 then m.plan[#m.plan + 1] = drop end
    m.w('XADD', out, token .. '-' .. ARGV[i + 2], 'live', ARGV[i + 4])
    m.w('PEXPIRE', out, m.DAY)
  end
end
m.flush(false)
return stale
