package state

import (
	"context"
	"fmt"
	"strings"

	"muster/jobs/queue/care"
	"muster/jobs/queue/read"
)

// standstill reads what keeps everything, or a whole zone, from starting.
type standstill struct {
	queue      Queue
	hasHistory bool // this server keeps one
}

// words returns a sentence for each such reason. Pauses of tasks, customers and zones are no
// reasons: somebody has ordered them for a part of the work, and the rest goes on.
func (s standstill) words(ctx context.Context) []string {
	var out []string
	// If Redis cannot be used, another line of health says so.
	if p, err := s.queue.Halts.Pauses(ctx); err == nil && p.Halted != "" {
		out = append(out, "nothing starts: everything is "+p.Halted+
			"; `muster resume --all --reason …` ends that")
	}
	zones, err := s.queue.Conn.Zones(ctx)
	if err != nil {
		return out
	}
	debts, _ := s.queue.Debts.Debts(ctx, zones) // of those that can be read
	if text := owing(debts, s.hasHistory); text != "" {
		out = append(out, text)
	}
	if text := frozenWords(s.queue.Zones.Freezes(ctx, zones)); text != "" {
		out = append(out, text)
	}
	return out
}

// owing names a zone that waits for history; empty if there is none.
func owing(debts []care.Debt, hasHistory bool) string {
	for _, d := range debts {
		if d.Owed == "" {
			continue
		}
		text := "nothing starts in zone " + d.Zone + " before history was asked what has ended: Redis " +
			"may have forgotten it"
		if !hasHistory {
			text += "; this server keeps no history"
		}
		return text + ". To start without: `muster nodes thaw --zone " + d.Zone + " --reason …`"
	}
	return ""
}

// frozenMost bounds the zones that frozenWords names.
const frozenMost = 5

// frozenWords names the zones that are frozen; empty if there are none.
func frozenWords(list []read.Freeze) string {
	if len(list) == 0 {
		return ""
	}
	var parts []string
	for i, f := range list {
		if i == frozenMost {
			parts = append(parts, fmt.Sprintf("in %d more zones", len(list)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("in zone %s until %s (%s)", f.Zone, f.Until, f.Why))
	}
	return "nothing starts " + strings.Join(parts, ", ") + ": the freeze ends by itself; " +
		"`muster nodes thaw --reason …` ends it at once, if every child of before is dead"
}
