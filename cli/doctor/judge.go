package doctor

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/jobs"
	"muster/jobs/queue/vitals"
)

// The bounds within which a thing is well.
const (
	redisLeast = 7                // main version
	fullNear   = 0.8              // share of maxmemory
	clockNear  = jobs.SkewMax / 4 // from here on a clock is worth a warning
	certSoon   = 30 * 24 * time.Hour
	diskLow    = 0.10
	diskOut    = 0.02
)

// judgeRedis judges the settings and the state of one server of Redis.
func judgeRedis(v vitals.Vitals) (list []Finding) {
	add := func(l Level, found, expected, do string) {
		list = append(list, Finding{l, "redis", v.Where, found, expected, do})
	}
	major, _, _ := strings.Cut(v.Version, ".")
	if n, err := strconv.Atoi(major); err != nil {
		add(Unknown, fmt.Sprintf("it says the version %q", v.Version), "7.0 or later",
			"look which server answers there")
	} else if n < redisLeast {
		add(Wrong, "version "+v.Version, "7.0 or later", "install a newer Redis")
	}
	if v.Policy != "noeviction" {
		add(Wrong, "maxmemory-policy is "+v.Policy, "noeviction, or jobs vanish",
			"CONFIG SET maxmemory-policy noeviction, and set it in redis.conf")
	}
	if !v.Appends {
		add(Wrong, "appendonly is off", "yes, or a restart forgets the queue",
			"CONFIG SET appendonly yes, and set it in redis.conf")
	}
	for _, last := range []struct{ what, said, expected string }{
		{"the last write to the append-only file", v.Append, "ok: until then Redis refuses writes"},
		{"the last rewrite of the append-only file", v.Rewrite, "ok: the file grows until one succeeds"},
		{"the last snapshot", v.Save, "ok: Redis may refuse writes until one succeeds"},
	} {
		if last.said != "ok" && last.said != "" {
			add(Wrong, last.what+" failed: "+last.said, last.expected,
				"read the log of Redis; its disk may be full, or its folder not writable")
		}
	}
	switch {
	case v.Most == 0:
		add(Note, "maxmemory is not set", "a number below the memory of the machine",
			"set maxmemory, so that Redis refuses new tasks before the system ends it")
	case float64(v.Used) >= fullNear*float64(v.Most):
		add(Warning, fmt.Sprintf("%d of %d bytes are used", v.Used, v.Most), "less than 80 %",
			"raise maxmemory, or find what fills it: muster blob ls, muster queue")
	}
	if v.User == "" || v.User == "default" {
		add(Note, "muster is the user default", "a user of its own",
			"give each role the user that `muster acl` prints")
	}
	if len(list) == 0 || !slices.ContainsFunc(list, func(f Finding) bool { return f.Level.bad() }) {
		add(Well, "version "+v.Version+", noeviction, append-only file", "", "")
	}
	return append(list, judgeClock("redis "+v.Where, "that of this machine", v.Apart, v.Here))
}

// judgeClock judges the difference between two clocks, as far as it is known.
func judgeClock(object, other string, apart, unsure time.Duration) Finding {
	off := max(apart.Abs()-unsure, 0)
	f := Finding{Well, "clock", object, fmt.Sprintf("%s off %s", off.Round(time.Millisecond), other),
		"", ""}
	switch {
	case off > jobs.SkewMax:
		f.Level = Wrong
	case off > clockNear:
		f.Level = Warning
	default:
		return f
	}
	f.Expected = fmt.Sprintf("less than %s; beyond %s nothing begins that needs a window", clockNear,
		jobs.SkewMax)
	f.Do = "run NTP (chrony, systemd-timesyncd) on both machines"
	return f
}

// judgeNode judges the report of a node about itself.
func judgeNode(n jobs.Node, version string) (list []Finding) {
	if n.State == jobs.NodeGone {
		return []Finding{{Warning, "node", n.ID, "it is gone, seen last " +
			n.Seen.UTC().Format(time.RFC3339), "a node that beats",
			"start muster master there, or wait until the list forgets it"}}
	}
	skew := time.Duration(n.Clock.Skew * float64(time.Second))
	list = append(list, judgeClock("node "+n.ID, "that of Redis", skew, 0))
	if n.Clock.Loose != "" {
		list = append(list, Finding{Warning, "clock", "node " + n.ID, "NTP does not keep it: " +
			n.Clock.Loose, "a clock that NTP keeps", "start chrony or systemd-timesyncd there"})
	}
	if n.Doubt != "" {
		list = append(list, Finding{Wrong, "node", n.ID, n.Doubt, "a node that begins jobs",
			"run muster trust check on the node"})
	}
	if n.Note != "" {
		list = append(list, Finding{Warning, "node", n.ID, n.Note, "no complaint",
			"read the log of the node"})
	}
	if n.Version != version {
		list = append(list, Finding{Note, "version", "node " + n.ID, n.Version,
			"that of the server, " + version, "upgrade the older one: docs/OPERATING.md"})
	}
	return list
}

// A guardedFile is a file with permissions that nobody may have.
type guardedFile struct {
	setting, path string
	bad           fs.FileMode
}

// judgeFile judges mode and owner of a file. uid is the owner, may are the users that it may be.
func judgeFile(of guardedFile, mode fs.FileMode, uid int, may []int) Finding {
	f := Finding{Well, "file", of.path, fmt.Sprintf("mode %04o", mode.Perm()), "", ""}
	switch {
	case !mode.IsRegular():
		f.Level, f.Found, f.Expected = Wrong, "it is no regular file", "a file"
		f.Do = "name a file in " + of.setting
	case mode.Perm()&of.bad != 0:
		right := mode.Perm() &^ of.bad
		f.Level, f.Expected = Wrong, fmt.Sprintf("%s: mode %04o or less", of.setting, right)
		f.Do = fmt.Sprintf("chmod %o %s; if others could read it, make a new one", right, of.path)
	case !slices.Contains(may, uid):
		f.Level, f.Found = Wrong, fmt.Sprintf("it belongs to uid %d", uid)
		f.Expected = of.setting + ": root, or the user of muster"
		f.Do = "chown muster " + of.path
	}
	return f
}

// judgeCert judges when a certificate ends.
func judgeCert(path, subject string, ends, now time.Time) Finding {
	left := ends.Sub(now)
	f := Finding{Well, "certificate", path, subject + " ends " + ends.UTC().Format(time.RFC3339), "",
		""}
	switch {
	case left <= 0:
		f.Level, f.Found = Wrong, subject+" ended "+ends.UTC().Format(time.RFC3339)
	case left < certSoon:
		f.Level = Warning
	default:
		return f
	}
	f.Expected = "30 days or more are left"
	f.Do = "renew it, replace the file, and restart the role that uses it"
	return f
}

// space describes a file system.
type space struct{ free, all, inodes, allInodes uint64 }

// judgeDisk judges the space that is left in a folder in which a role writes.
func judgeDisk(path string, s space) Finding {
	share := func(free, all uint64) float64 {
		if all == 0 {
			return 1 // some file systems count no inodes
		}
		return float64(free) / float64(all)
	}
	bytes, files := share(s.free, s.all), share(s.inodes, s.allInodes)
	f := Finding{Well, "disk", path, fmt.Sprintf("%d MiB free, %.0f %%", s.free>>20, 100*bytes), "",
		""}
	if files < bytes {
		f.Found = fmt.Sprintf("%d inodes free, %.0f %%", s.inodes, 100*files)
	}
	switch least := min(bytes, files); {
	case least < diskOut:
		f.Level = Wrong
	case least < diskLow:
		f.Level = Warning
	default:
		return f
	}
	f.Expected, f.Do = "10 % or more", "free space there, or move the folder to a larger disk"
	return f
}
