package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/api"
	"muster/cli"
	"muster/cli/watch"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// This file is the second chapter of the demo: rules for firewalls, host by host confirmed
// or taken back, in waves.

// demoRunbook does on pretended hosts what the built-in runbook firewall does on real ones: the
// built-in one uses more of a host than a pretended one has.
const demoRunbook = `name: ruleset
description: Puts rules in force; a host that is not reached under them takes them back.
arguments:
  rules: {type: file, description: rules as nft -f reads them}
disruptive: true
timeout: 2m
steps:
  - name: bring
    upload: {from: rules, to: /tmp/rules.nft}
  - name: rehearse
    check: nft -c -f /tmp/rules.nft
  - name: activate
    confirm:
      guard: echo 'flush ruleset' >"$MUSTER_DIR/old" && nft list ruleset >>"$MUSTER_DIR/old"
      apply: nft -f /tmp/rules.nft
      prove: nft list ruleset
      rollback: nft -f "$MUSTER_DIR/old"
      keep: cp /tmp/rules.nft /etc/nftables.conf
      within: 10s
`

const demoRules = `flush ruleset
table inet filter {
	chain input {
		type filter hook input priority 0; policy drop;
		ct state established,related accept
		iifname "mgmt0" tcp dport 22 accept
	}
}
`

const (
	demoFirewalls = 40 // the most hosts that get rules
	demoMaxFailed = "3"
)

// demoRollout is the second chapter, as the demo's JSON shows it.
type demoRollout struct {
	demoTask
	Waves []int `json:"waves"`
	// New and Old count the hosts that have the new and the old rules at the end, as the hosts report.
	New        int      `json:"new"`
	Old        int      `json:"old"`
	RolledBack []string `json:"rolled_back"` // hosts that took the rules back by themselves
}

// rollOut puts rules in force, as the operator carol.
func (st *stage) rollOut(ctx context.Context, s *cli.Session) (demoRollout, error) {
	var names []string
	for _, p := range []fakefleet.Personality{fakefleet.Normal, fakefleet.Slow, fakefleet.LockOut} {
		names = append(names, st.fleet.Names(p)...)
	}
	slices.Sort(names)
	locked := st.fleet.Names(fakefleet.LockOut)
	from := 0
	if len(locked) > 0 { // so that the first waves have some, too
		from = max(0, slices.Index(names, locked[0])-demoFirewalls/5)
	}
	names = names[from:min(len(names), from+demoFirewalls)]

	t, err := s.Submit(ctx, api.Submit{ID: string(jobs.NewTaskID(time.Now(), cli.Chance())),
		Runbook: "ruleset", On: strings.Join(names, ","), As: "carol",
		Files: map[string][]byte{"rules": []byte(demoRules)},
		Rollout: &jobs.RolloutAsk{MaxFailed: demoMaxFailed,
			Stages: jobs.Stages{Waves: []string{"1", "10%", "50%", "100%"}, Soak: "1s"}}}, nil)
	if err != nil {
		return demoRollout{}, err
	}
	if !s.JSON {
		s.Say("carol submits task %s: new firewall rules on %s, a canary and three waves, "+
			"stopped if more than %s fail", t.Task, cli.Count(t.Total, "host"), demoMaxFailed)
	}
	end, err := watch.Follow(ctx, s, t.TaskInfo)
	if err != nil {
		return demoRollout{}, err
	}
	out := demoRollout{demoTask: newDemoTask("rules", end), RolledBack: []string{}}
	if end.Rollout != nil {
		out.Waves = end.Rollout.Waves
	}
	list, err := s.Jobs(ctx, end.Task, "", jobs.RolledBack)
	if err != nil {
		return out, err
	}
	for _, j := range list {
		out.RolledBack = append(out.RolledBack, j.Host)
	}
	for _, name := range names {
		if st.fleet.Rules(name) != "" {
			out.New++
		} else {
			out.Old++
		}
	}
	return out, nil
}

// rulesWords describes the chapter.
func rulesWords(r demoRollout) string {
	waves := make([]string, len(r.Waves))
	for i, n := range r.Waves {
		waves[i] = fmt.Sprint(n)
	}
	text := fmt.Sprintf("  carol  put new firewall rules on %s in waves of %s, in %s:\n"+
		"         %d have them, proven over a new connection each.\n", cli.Count(r.Total, "host"),
		strings.Join(waves, ", "), cli.Span(cli.Seconds(r.Seconds)), r.New)
	for _, host := range r.RolledBack {
		text += fmt.Sprintf("         %s locked itself out with them, took them back by itself, "+
			"and answers again.\n", cli.Cell(host))
	}
	return text
}
