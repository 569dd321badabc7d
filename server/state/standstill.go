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
	return append(out, frozenWords(s.queue.Zones.Freezes(ctx, zones))...)
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

// frozenMost bounds the zones that frozenWords names of each kind.
const frozenMost = 5

// frozenWords names the zones that Redis has forgotten, and those that are frozen.
func frozenWords(list []read.Freeze) (out []string) {
	var gone, frozen []string
	for _, f := range list {
		if f.Until.IsZero() {
			gone = append(gone, f.Zone)
		} else {
			frozen = append(frozen, fmt.Sprintf("in zone %s until %s (%s)", f.Zone, f.Until, f.Why))
		}
	}
	if len(gone) > 0 {
		out = append(out, "Redis has forgotten zone "+some(gone, "")+": it was emptied, or replaced by "+
			"an empty one, and what was open there is lost; the next call freezes the zone")
	}
	if len(frozen) > 0 {
		out = append(out, "nothing starts "+some(frozen, "in ")+": the freeze ends by itself; "+
			"`muster nodes thaw --reason …` ends it at once, if every child of before is dead")
	}
	return out
}

// some joins the first texts, and counts the others: in has the word in front of them.
func some(list []string, in string) string {
	if n := len(list) - frozenMost; n > 0 {
		list = append(list[:frozenMost:frozenMost], fmt.Sprintf("%s%d more zones", in, n))
	}
	return strings.Join(list, ", ")
}
