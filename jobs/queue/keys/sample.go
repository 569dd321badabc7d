package keys

import "strings"

// MayCall asks Redis which commands the user of this connection may not call, without calling
// them. Each argument is a command with its arguments, separated by blanks.
const MayCall = `local missing = {}
if not redis.acl_check_cmd then return missing end
for _, line in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(line, '%S+') do words[#words + 1] = word end
  local known, may = pcall(redis.acl_check_cmd, unpack(words))
  if known and not may then missing[#missing + 1] = line end
end
return missing`

// TooMuch returns the calls that no user of a node needs, and that would give it power over the
// others. Another zone stands for all other zones.
func TooMuch() []any {
	other := "muster-another-zone"
	return []any{"FUNCTION LOAD x", "FUNCTION DELETE x", "FUNCTION FLUSH", "SCRIPT FLUSH", "FLUSHALL",
		"CONFIG GET x", "ACL LIST", "EXISTS " + Hub("tokens", ""), "DEL " + Hub("tokens", ""),
		"DEL " + Hub("inventory", ""), "DEL " + Hub("schedules", ""),
		"DEL " + Hub("task:", "x"), "DEL " + Zone(other, "queue", ""),
		"DEL " + Zone(other, "task:", "x")}
}

// Sample returns a command with as many arguments as it takes, on a key of a zone that every role
// may write.
func Sample(command, zone string) string {
	key, channel := Zone(zone, "queue", ""), Zone(zone, "wake", "")
	words := strings.ReplaceAll(strings.ToUpper(command), "|", " ")
	switch command {
	case "command", "info", "ping", "time", "unsubscribe", "cluster|slots", "exec", "multi", "unwatch",
		"function|list":
		return words
	case "select":
		return words + " 0"
	case "del", "exists", "watch": // all their arguments are keys
		return words + " " + key
	case "wait":
		return words + " 0 0"
	case "script|load", "function|load", "function|delete":
		return words + " x"
	case "eval", "evalsha", "fcall":
		return words + " x 1 " + key
	case "subscribe":
		return words + " " + channel
	case "publish":
		return words + " " + channel + " x"
	case "xinfo|stream":
		return words + " " + key
	case "xtrim":
		return words + " " + key + " MAXLEN 1"
	case "xread":
		return words + " STREAMS " + key + " 0"
	case "xadd":
		return words + " " + key + " * e x"
	}
	return words + " " + key + " 1 1 1"
}
