package main

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/history"
	"muster/history/ledger"
	"muster/internal/settings"
	"muster/server/scribe"
)

// openAudit returns the writer of the audit log. The log is in the database of history, or in a
// file of its own where there is no history: no setting turns it off.
func openAudit(s settings.Settings, h *history.Store, log hclog.Logger) (*scribe.Scribe, error) {
	if h == nil {
		var err error
		// It is closed by the end of the process, as the connections to it are.
		if h, err = history.Open(s.LedgerConfig()); err != nil {
			return nil, err
		}
	}
	return scribe.New(scribe.Needs{Book: ledger.New(h), Dir: s.Past.Audit.Dir,
		Who: func() string { return s.Node.Name }, Log: log, Now: time.Now}), nil
}
