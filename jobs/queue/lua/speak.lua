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
--
-- out:<id> has an entry with the field `said` for each attempt that has reported: a line
-- with its token and its gap, maybe its runs, then head and tail. An attempt that runs for
-- more than a second has entries with the field `live` and the ids <token>-<bytes said so
-- far>, so that readers continue where they were. A child writes them for all its jobs in
-- one call, at most two a second and 256 kB each. Of each job head and tail stay,
-- output.max bytes and a little.
--
-- Nobody waits for a preview: Redis may leave some of it out, and the result replaces it.
-- Entries of an attempt whose worker died stay, for they are all that is known. The field
-- `runs` of `live` has seven numbers: where the line about a run that was taken over
-- begins, then of that run and of the last one the token that began it, its number on the
-- host, and where its output begins in this attempt. An attempt that took over a run hears
-- all of it again, and readers skip the bytes that earlier attempts heard, or fill their
-- gaps with them. Entries without runs are all shown.

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
