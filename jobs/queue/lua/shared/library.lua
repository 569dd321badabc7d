-- library: makes the code in front of it a function of Redis, in place of a script that EVALSHA
-- calls. Its functions are created once, when it is loaded, and not at every call. libraryHead in
-- library.go defines globals, string and the rest.
--
-- So the fields that a call has left in m are still there in the next one. reset() renews the
-- fields that the prelude shares, run() those that m.SET names, and every other field that a call
-- has set becomes false before the next.

local of         -- the zone whose keys are named
local left = {}  -- names of what calls have set

-- begin does what is impossible while the library is loaded: Redis has no globals then.
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

