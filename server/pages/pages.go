// Package pages puts the pages for browsers together: the frame, and the rooms that fill it.
//
// Floor 7: may import the rooms below it, and server/web.
package pages

import (
	"muster/server/pages/dnssec"
	"muster/server/pages/estate"
	"muster/server/pages/frame"
	"muster/server/pages/passkeys"
	"muster/server/pages/people"
	"muster/server/pages/rollouts"
	"muster/server/pages/sheets"
	"muster/server/pages/signals"
	"muster/server/pages/times"
	"muster/server/pages/work"
)

// New returns the pages.
func New(n frame.Needs) *frame.Frame {
	return frame.NewFrame(n, work.Content(), estate.Content(), times.Content(),
		sheets.Content(), rollouts.Content(), signals.Content(), people.Content(),
		dnssec.Content(), passkeys.Content())
}
