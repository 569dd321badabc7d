package draft

import (
	"slices"
	"strings"

	"muster/api"
	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/scripts"
	"muster/server/fault"
)

// rollOut resolves how a task is to go out. It returns the stored contents that its health check
// needs, the hosts in the order of their waves, and every mistake. The rollout is nil where
// nothing is asked for.
func (in Setting) rollOut(ask *jobs.RolloutAsk, hosts []fleet.Host) (
	r *jobs.Rollout, blobs []string, arranged []fleet.Host, wrong []error) {
	if ask == nil || len(hosts) == 0 { // which is a mistake of its own
		return nil, nil, hosts, nil
	}
	if Chained(api.Submit{Rollout: ask}) {
		return nil, nil, hosts, []error{fault.At("body.rollout", "nothing can be staged or rolled back "+
			"here: submit a task of its own for that")}
	}
	r, wrong = resolveRollout(*ask, hosts)
	var bad []error
	r.Check, blobs, bad = in.healthCheck(*ask, hosts)
	if wrong = append(wrong, bad...); len(wrong) > 0 || len(r.Waves) == 0 {
		return r, blobs, hosts, wrong
	}
	arranged, r.Waves = intoWaves(hosts, r.Waves)
	if len(r.Waves) > jobs.WavesMax {
		wrong = append(wrong, fault.At("body.rollout.waves", "%d waves, because members of a group "+
			"never share one: want at most %d", len(r.Waves), jobs.WavesMax))
	}
	return r, blobs, arranged, wrong
}

// resolveRollout makes numbers of what is asked for.
func resolveRollout(ask jobs.RolloutAsk, hosts []fleet.Host) (*jobs.Rollout, []error) {
	r, bad := ask.Resolve(len(hosts))
	var wrong []error
	for _, m := range bad {
		wrong = append(wrong, fault.Each("body.rollout."+m.Field, m.Err)...)
	}
	if zones := zoneNames(hosts); len(zones) > 1 {
		wrong = append(wrong, fault.At("body.rollout", "the hosts are of %d zones (%s), and a rule or "+
			"waves are kept in one: submit a task for each, as --on 'NAMES&{zone=%s}' or "+
			"--on 'LABELS,zone=%[3]s'", len(zones), wording.ClipList(strings.Join(zones, ", ")),
			zones[0]))
	}
	return &r, wrong
}

// intoWaves puts hosts into the order of their waves, no two of a group in one.
func intoWaves(hosts []fleet.Host, sizes []int) (arranged []fleet.Host, waves []int) {
	groups := make([]string, len(hosts))
	for i, h := range hosts {
		groups[i] = h.Group
	}
	order, waves := jobs.Spread(groups, sizes)
	for _, i := range order {
		arranged = append(arranged, hosts[i])
	}
	return arranged, waves
}

// healthCheck freezes the task that is to succeed between waves, on whichever hosts.
func (in Setting) healthCheck(ask jobs.RolloutAsk, hosts []fleet.Host) (
	spec *jobs.Spec, blobs []string, wrong []error) {
	if ask.Health == "" {
		return nil, nil, nil
	}
	const at = "body.rollout.health"
	runbook, err := in.Catalog.Lookup(ask.Health)
	if err != nil {
		return nil, nil, fault.Each(at, err)
	}
	values, err := runbook.BindGiven(scripts.Given{Args: ask.HealthArgs, Stored: in.Stored})
	if err != nil {
		return nil, nil, fault.Each("body.rollout.health_args", err)
	}
	frozen := runbook.Freeze(values)
	wrong = fault.Each(at, checkHosts(frozen, hosts))
	wrong = append(wrong, checkNeeds(frozen.Limits(), hosts, in.Scene.Stock)...)
	if frozen.Disruptive || frozen.Window {
		wrong = append(wrong, fault.At(at, "%s is disruptive or needs a window: a health check only "+
			"looks", frozen.Runbook))
	}
	made, err := specOf(frozen)
	return &made, frozen.Blobs(), append(wrong, fault.Each(at, err)...)
}

func zoneNames(hosts []fleet.Host) []string {
	var zones []string
	for _, h := range hosts {
		zones = append(zones, h.Zone)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// rollAgain returns the rollout of a task that does some jobs of another again. It keeps the
// rule, as far as that is one for so few hosts, and drops the waves.
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

// rolling shows a rollout as the answer to its submit does.
func rolling(r *jobs.Rollout) *jobs.RolloutInfo {
	if r == nil {
		return nil
	}
	info := &jobs.RolloutInfo{Rollout: *r}
	info.Check = nil
	info.Wave = min(len(r.Waves), 1)
	return info
}
