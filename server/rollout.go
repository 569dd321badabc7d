package server

import (
	"slices"
	"strings"

	"muster/fleet"
	"muster/jobs"
)

// rollOut resolves how a task is to go out: the hosts in the order of their waves, and
// every mistake. Nothing that is asked for is nil.
func rollOut(ask *jobs.RolloutAsk, hosts []fleet.Host) (*jobs.Rollout, []fleet.Host, []error) {
	if ask == nil || len(hosts) == 0 { // which is a mistake of its own
		return nil, hosts, nil
	}
	r, bad := ask.Resolve(len(hosts))
	var wrong []error
	for _, m := range bad {
		wrong = append(wrong, mistakes("body.rollout."+m.Field, m.Err)...)
	}
	if zones := zoneNames(hosts); len(zones) > 1 {
		wrong = append(wrong, mistake("body.rollout", "the hosts are of %d zones (%s), and a rule or "+
			"waves are kept in one: submit a task for each, such as --on '…,zone=%s'", len(zones),
			brief(strings.Join(zones, ", ")), zones[0]))
	}
	if len(wrong) > 0 {
		return nil, hosts, wrong
	}
	if len(r.Waves) == 0 {
		return &r, hosts, nil
	}
	groups := make([]string, len(hosts))
	for i, h := range hosts {
		groups[i] = h.Group
	}
	order, waves := jobs.Spread(groups, r.Waves)
	if len(waves) > jobs.WavesMax {
		return nil, hosts, []error{mistake("body.rollout.waves", "%d waves, because members of a group "+
			"never share one: want at most %d", len(waves), jobs.WavesMax)}
	}
	r.Waves = waves
	arranged := make([]fleet.Host, len(hosts))
	for i, from := range order {
		arranged[i] = hosts[from]
	}
	return &r, arranged, nil
}

func zoneNames(hosts []fleet.Host) []string {
	var zones []string
	for _, h := range hosts {
		zones = append(zones, h.Zone)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// rollAgain is the rollout of a task that does some jobs of another again: what may fail
// stays, as far as it is a rule for so few hosts, and the waves are gone.
func rollAgain(r *jobs.Rollout, hosts []fleet.Host) *jobs.Rollout {
	if r == nil || len(zoneNames(hosts)) > 1 {
		return nil
	}
	kept := jobs.Rollout{Rule: r.Rule}
	if kept.MaxFailed != nil && *kept.MaxFailed >= len(hosts) {
		kept.MaxFailed = nil
	}
	if kept.MaxFailed == nil && kept.Breaker.Failures == 0 {
		return nil
	}
	return &kept
}

// rolling is a rollout as the answer to its submit shows it.
func rolling(r *jobs.Rollout) *jobs.RolloutInfo {
	if r == nil {
		return nil
	}
	info := &jobs.RolloutInfo{Rollout: *r}
	info.Check = nil
	info.Wave = min(len(r.Waves), 1)
	return info
}
