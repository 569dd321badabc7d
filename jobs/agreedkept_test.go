package jobs_test

import (
	"testing"

	"muster/jobs"
)

func TestARedisHasLostWhatItKnewLess(t *testing.T) {
	t.Parallel()
	orders := func(part string, fields ...string) jobs.AgreedPart {
		p := jobs.AgreedPart{Part: part, Fields: map[string]string{}}
		for i := 0; i < len(fields); i += 2 {
			p.Fields[fields[i]] = fields[i+1]
		}
		return p
	}
	mark := func(n int64) jobs.AgreedPart { return jobs.AgreedPart{Part: jobs.AgreedWindows, Mark: n} }
	const on, off, acme = "on", "off", "customer acme"
	for _, c := range []struct {
		name      string
		kept, now jobs.AgreedPart
		lost      bool
	}{
		{"nothing was ever agreed", mark(0), mark(0), false},
		{"the same version", mark(3), mark(3), false},
		{"a later version", mark(3), mark(4), false},
		{"an older version", mark(3), mark(2), true},
		{"no version", mark(3), mark(0), true},
		{"a halt that stands", orders("halt", "id", "7", "state", on), orders("halt", "id", "7", "state", on), false},
		{"a halt that was lifted since", orders("halt", "id", "7", "state", on),
			orders("halt", "id", "7", "state", off), false},
		{"a halt that is gone", orders("halt", "id", "7", "state", on), orders("halt"), true},
		{"a lifted halt that is gone", orders("halt", "id", "7", "state", off), orders("halt"), false},
		{"a pause that ended since", orders("pauses", acme, "7 on x"), orders("pauses", acme, "8 off y"), false},
		{"a pause that is gone", orders("pauses", acme, "7 on x"), orders("pauses", "zone zrh", "9 on x"), true},
		{"an ended pause that was cleaned up", orders("pauses", acme, "7 off x"), orders("pauses"), false},
	} {
		if lost := c.kept.LostIn(c.now); lost != c.lost {
			t.Errorf("%s: lost is %t", c.name, lost)
		}
	}
}
