package main

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/audit"
	"muster/history"
	"muster/history/ledger"
	"muster/internal/serverkey"
	"muster/internal/settings"
	"muster/server/anchor"
	"muster/server/auditlog"
	"muster/server/scribe"
)

// openAudit returns the audit log. It is in the database of history, or in a file of its own where
// there is no history: no setting turns it off.
func openAudit(s settings.Settings, h *history.Store, keys serverKeys,
	log hclog.Logger) (auditlog.Log, error) {
	if h == nil {
		var err error
		// It is closed by the end of the process, as the connections to it are.
		if h, err = history.Open(s.LedgerConfig()); err != nil {
			return auditlog.Log{}, err
		}
	}
	l := auditlog.Log{Ledger: ledger.New(h), Keys: auditKeys(keys)}
	name := s.Node.Name
	l.Scribe = scribe.New(scribe.Needs{Book: l.Ledger, Dir: s.Past.Audit.Dir, Sign: signBy(l.Keys),
		Who: func() string { return name }, Log: log, Now: time.Now})
	var err error
	l.Anchor, err = anchor.New(anchor.Needs{Ledger: l.Ledger, Keys: l.Keys, Host: name,
		Config: s.Past.Audit.Anchor(), Dir: s.Past.Audit.Dir, Log: log, Now: time.Now})
	return l, err
}

// serverKeys reads the key of servers.
type serverKeys = func() (serverkey.Keys, error)

// auditKeys returns the keys of the audit log, made of the key of servers.
func auditKeys(read serverKeys) audit.Keyring {
	return func() (*audit.Signer, audit.Keys, error) {
		k, err := read()
		if err != nil || k.None() {
			return nil, audit.Keys{}, err
		}
		origin := audit.Origin(k.Installation())
		signer, err := audit.NewSigner(origin, k.Signer(serverkey.Audit))
		if err != nil {
			return nil, audit.Keys{}, err
		}
		keys, err := audit.NewKeys(origin, k.Publics(serverkey.Audit))
		return signer, keys, err
	}
}

// signBy signs leaves by the key that is in force, if there is one.
func signBy(keys audit.Keyring) ledger.Sign {
	return func(leaf []byte) (string, error) {
		signer, _, err := keys()
		if err != nil || signer == nil {
			return "", err
		}
		return signer.Entry(leaf)
	}
}
