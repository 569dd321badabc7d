package doctor

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue/vitals"
)

func TestEachMistakeOfRedisHasItsOwnFinding(t *testing.T) {
	t.Parallel()
	good := vitals.Vitals{Where: "r:1", User: "muster-server", Version: "7.2.4", Policy: "noeviction",
		Used: 1, Most: 100, Appends: true, Append: "ok", Rewrite: "ok", Save: "ok"}
	for _, f := range judgeRedis(good) {
		if f.Level != Well {
			t.Errorf("of a good one: %+v", f)
		}
	}
	for name, c := range map[string]struct {
		spoil func(*vitals.Vitals)
		level Level
		found string
	}{
		"old":      {func(v *vitals.Vitals) { v.Version = "6.2.1" }, Wrong, "6.2.1"},
		"no redis": {func(v *vitals.Vitals) { v.Version = "" }, Unknown, `version ""`},
		"evicts":   {func(v *vitals.Vitals) { v.Policy = "allkeys-lru" }, Wrong, "allkeys-lru"},
		"forgets":  {func(v *vitals.Vitals) { v.Appends = false }, Wrong, "appendonly is off"},
		"write":    {func(v *vitals.Vitals) { v.Append = "err" }, Wrong, "last write"},
		"rewrite":  {func(v *vitals.Vitals) { v.Rewrite = "err" }, Wrong, "last rewrite"},
		"save":     {func(v *vitals.Vitals) { v.Save = "err" }, Wrong, "last snapshot"},
		"full":     {func(v *vitals.Vitals) { v.Used = 80 }, Warning, "80 of 100 bytes"},
		"no bound": {func(v *vitals.Vitals) { v.Most = 0 }, Note, "maxmemory is not set"},
		"nobody":   {func(v *vitals.Vitals) { v.User = "" }, Note, "user default"},
		"late":     {func(v *vitals.Vitals) { v.Apart = -3 * time.Second }, Wrong, "3s off"},
		"unsure": {func(v *vitals.Vitals) { v.Apart, v.Here = 3*time.Second, 2*time.Second }, Warning,
			"1s off"},
	} {
		v := good
		c.spoil(&v)
		list := slices.DeleteFunc(judgeRedis(v), func(f Finding) bool { return f.Level == Well })
		if len(list) != 1 || list[0].Level != c.level || !strings.Contains(list[0].Found, c.found) {
			t.Errorf("%s: got %+v, want one %s with %q", name, list, c.level, c.found)
			continue
		}
		if list[0].Expected == "" || list[0].Do == "" {
			t.Errorf("%s: nothing is expected, or to be done: %+v", name, list[0])
		}
	}
}

func TestModesAndOwnersAreJudged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bad, mode fs.FileMode
		uid       int
		want      Level
	}{
		{badOfKey, 0o400, 0, Well}, {badOfKey, 0o600, 7, Well}, {badOfKey, 0o640, 0, Wrong},
		{badOfSecret, 0o640, 0, Well}, {badOfSecret, 0o644, 0, Wrong}, {badOfSecret, 0o660, 0, Wrong},
		{badOfRules, 0o644, 0, Well}, {badOfRules, 0o664, 0, Wrong}, {badOfKey, 0o600, 8, Wrong},
		{badOfKey, 0o600 | fs.ModeDir, 0, Wrong},
	} {
		if f := judgeFile(guardedFile{"x", "/x", c.bad}, c.mode, c.uid, []int{0, 7}); f.Level != c.want {
			t.Errorf("bad %04o, mode %v, uid %d: %+v, want %s", c.bad, c.mode, c.uid, f, c.want)
		}
	}
}

func TestCertificatesDisksAndNodesAreJudged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]Level{0: Wrong, time.Hour: Warning, certSoon: Well} {
		if f := judgeCert("c", "CN=x", now.Add(left), now); f.Level != want {
			t.Errorf("%s left: %+v, want %s", left, f, want)
		}
	}
	for s, want := range map[space]Level{{50, 100, 0, 0}: Well, {9, 100, 0, 0}: Warning,
		{1, 100, 0, 0}: Wrong, {50, 100, 1, 100}: Wrong} {
		if f := judgeDisk("d", s); f.Level != want {
			t.Errorf("%+v: %+v, want %s", s, f, want)
		}
	}
	worst := func(n jobs.Node) Level {
		return newReport("", judgeNode(n, "1")).Findings[0].Level
	}
	for want, n := range map[Level]jobs.Node{
		Well: {Version: "1"}, Note: {Version: "2"}, Warning: {Version: "1", State: jobs.NodeGone},
		Wrong: {Version: "1", Clock: jobs.Clock{Skew: -2.5}}} {
		if got := worst(n); got != want {
			t.Errorf("%+v: got %s, want %s", n, got, want)
		}
	}
}

// A thing that nobody could look at is not well.
func TestTheUnknownIsNotWell(t *testing.T) {
	t.Parallel()
	for _, l := range levels {
		want := l == Well || l == Note
		if r := newReport("", []Finding{{Level: Well}, {Level: l}}); r.Well != want ||
			r.Findings[0].Level != l {
			t.Errorf("%s: %+v", l, r)
		}
	}
}
