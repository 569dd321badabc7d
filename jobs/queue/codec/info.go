package codec

import (
	"fmt"
	"strconv"
	"strings"
)

// InfoField returns a field of an answer to INFO; empty: it has none of that name.
func InfoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Replicas returns the addresses of the replicas in INFO replication that follow.
func Replicas(info string) (addrs []string) {
	for i := 0; ; i++ {
		line := InfoField(info, "slave"+strconv.Itoa(i))
		if line == "" {
			return addrs
		}
		fields := map[string]string{}
		for part := range strings.SplitSeq(line, ",") {
			key, value, _ := strings.Cut(part, "=")
			fields[key] = value
		}
		if fields["state"] == "online" {
			addrs = append(addrs, fields["ip"]+":"+fields["port"])
		}
	}
}

// Forgetful returns the mistakes in the settings of a server by INFO memory and persistence; the
// second result reports whether a restart forgets everything.
func Forgetful(info string) (wrong []string, forgets bool) {
	if p := InfoField(info, "maxmemory_policy"); p != "noeviction" {
		wrong = append(wrong, fmt.Sprintf("maxmemory-policy is %s: set noeviction, or jobs vanish", p))
	}
	if InfoField(info, "aof_enabled") != "1" {
		forgets = true
		wrong = append(wrong, "appendonly is off: set it to yes, or a restart forgets the queue")
	}
	return wrong, forgets
}
