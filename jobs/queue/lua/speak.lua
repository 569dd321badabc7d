-- speak: keeps what the hosts of running jobs say, for those who listen. It is a
-- preview: the result of the attempt brings all that is kept, and takes its place.
--
-- KEYS 1 zone
-- ARGV 1 number of jobs, then 6 each: id, token, end (bytes that the host has said
--      in this attempt), ends of earlier entries to drop, separated by blanks, data,
--      which runs of steps it is about (jobs.Runs; may be empty)
-- Returns {now, id …} of those whose attempt has ended, or is not the latest;
--      {absent, now} if there is no key zone
-- Keeps: an entry of a running attempt in out:<id> has the id <token>-<end>; the
--      record of its job says live if it has some.

m.begin()
if not m.zone.run then return {'absent', m.at} end

local stale = {m.at}
local ids = {}
for i = 2, 1 + 6 * tonumber(ARGV[1]), 6 do ids[#ids + 1] = ARGV[i] end
m.readJobs(ids)
for i = 2, 1 + 6 * tonumber(ARGV[1]), 6 do
  local id, token, out = ARGV[i], ARGV[i + 1], m.kOut .. ARGV[i]
  local j = m.job(id)
  if j.state ~= 'running' or j.token ~= token then
    stale[#stale + 1] = id
  else
    if not j.live then
      j.live = true
      m.keep(id, j)
    end
    local drop = {'XDEL', out}
    for done in string.gmatch(ARGV[i + 3], '%S+') do drop[#drop + 1] = token .. '-' .. done end
    if #drop > 2 then m.plan[#m.plan + 1] = drop end
    local add = {'XADD', out, token .. '-' .. ARGV[i + 2], 'live', ARGV[i + 4]}
    if ARGV[i + 5] ~= '' then add[6], add[7] = 'runs', ARGV[i + 5] end
    m.plan[#m.plan + 1] = add
    m.w('PEXPIRE', out, m.DAY)
  end
end
m.flush(false)
return stale
