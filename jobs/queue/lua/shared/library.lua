-- library: makes a function of Redis of what stands before it, in place of a script
-- that EVALSHA calls. Its functions are made once, when it is loaded, and not at
-- every call. globals, string and the rest are of libraryHead in library.go.
--
-- So what a call has left in m is still there in the next one. reset() makes anew
-- what the prelude shares, run() what m.SET names, and whatever else a call has set is
-- false before the next.

local of         -- the zone whose keys are named
local left = {}  -- names of what calls have set

-- begin does what is not possible while the library is loaded: Redis has no globals then.
local function begin()
  string, math, table, cjson, tonumber, ipairs, pairs, unpack, rawget, sub, format = globals()
  m.keys('')
  m.reset()
  for i = 1, #m.SET do m[m.SET[i]] = false end
  setmetatable(m, {__newindex = function(_, name, value)
    left[#left + 1] = name
    rawset(m, name, value)
  end})
end

local function answer(keys, args)
  if not of then begin() end
  call, ARGV = redis.call, args
  if keys[1] ~= of then
    of = keys[1]
    m.keys(sub(of, 1, -5))
  end
  for i = 1, #left do m[left[i]] = false end
  m.reset()
  return m.run()
end

