// Package agreed compares what Redis knows of what was agreed (windows, freezes, approvals,
// schedules, drains, pauses) with the copy that history keeps, and says what is lost.
//
// Floor 2: may import jobs.
package agreed

import (
	"cmp"
	"context"
	"strings"

	"muster/jobs"
)

// A Loss says what Redis has lost of what was agreed.
type Loss struct {
	Note    string // empty: nothing is known to be lost
	Empty   bool   // Redis knows nothing at all of times and schedules
	Unasked error  // why history could not be asked
}

// History keeps a copy of what was agreed, by part.
type History interface {
	Agreed(ctx context.Context) (map[string]jobs.AgreedPart, error)
}

// Compare returns the loss that a server has noted in Redis, or else compares the parts that Redis
// has with history. Without a history it knows the noted one only.
func Compare(ctx context.Context, now map[string]jobs.AgreedPart, noted jobs.AgreedLost,
	h History) Loss {
	if !noted.Since.IsZero() {
		return Loss{Note: cmp.Or(noted.Note, "it is not known what")}
	}
	l := Loss{Empty: now[jobs.AgreedWindows].Mark == 0 && now[jobs.AgreedSchedules].Mark == 0}
	if h == nil {
		return l
	}
	kept, err := h.Agreed(ctx)
	if gone := Lost(kept, now); err == nil && len(gone) > 0 {
		l.Note = Words(kept, gone)
	}
	l.Unasked = err
	return l
}

// Lost returns the names of the parts that history keeps and Redis has lost.
func Lost(kept, now map[string]jobs.AgreedPart) (gone []string) {
	for _, part := range jobs.AgreedParts() {
		was, is := kept[part], now[part]
		if was.Part != "" && was.LostIn(is) {
			gone = append(gone, part)
		}
	}
	return gone
}

// Words names parts that are gone, with what each of them held.
func Words(kept map[string]jobs.AgreedPart, gone []string) string {
	words := make([]string, len(gone))
	for i, part := range gone {
		words[i] = part
		if has := kept[part].Words(); has != "" {
			words[i] += " (" + has + ")"
		}
	}
	return strings.Join(words, ", ")
}
