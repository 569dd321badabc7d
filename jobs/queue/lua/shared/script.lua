-- script: stands in front of the prelude in a script that EVALSHA calls.

local call, sub, format = redis.call, string.sub, string.format

-- Parts that a call rarely needs are created at their first use: m.lazy is a function around them,
-- and making a function costs time at every call.
setmetatable(m, {__index = function(_, name)
  local lazy = rawget(m, 'lazy')
  if not lazy then return nil end
  m.lazy = nil
  lazy()
  return rawget(m, name)
end})

