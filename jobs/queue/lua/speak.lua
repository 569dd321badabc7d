-- speak: stores the output of the hosts of running jobs, for listeners. It is a preview: the result
-- of the attempt brings all output that is kept, and replaces it.
--
-- KEYS 1 zone
-- ARGV 1 number of jobs, then 6 each: id, token, end (bytes that the host has written
--      in this attempt), ends of earlier entries to drop, separated by blanks, data,
--      the runs of steps it belongs to (jobs.Runs; may be empty)
-- Returns {now, id …} of the jobs whose attempt has ended, or is not the latest;
--      {absent, now} if there is no key zone
-- Keeps: an entry of a running attempt in out:<id> has the id <token>-<end>; the
--      record of its job says live if it has some.
--
-- out:<id> has an entry with the field `said` for each attempt that has reported: a line with its
-- token and its gap, maybe its runs, then head and tail. An attempt that runs for more than a
-- second has entries with the field `live` and the ids <token>-<bytes so far>, so that readers
-- continue from their position. A child writes them for all its jobs in one call, at most two calls
-- a second and 256 kB each. Head and tail of each job stay: output.max bytes and a little.
--
-- Nobody waits for a preview: Redis may leave some of it out, and the result replaces it. Entries
-- of an attempt whose worker died stay, because nothing else is known. The field `runs` of `live`
-- has seven numbers: the place of the line that reports a takeover; then, for the run that was
-- taken over and for the last run, the token that began it, its number on the host, and the place
-- where its output begins in this attempt. An attempt that took over a run receives all of its
-- output again, and readers skip the bytes that earlier attempts received, or fill their gaps with
-- them. Entries without runs are all shown.

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
