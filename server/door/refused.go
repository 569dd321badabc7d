package door

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/server/metrics"
	"muster/server/scribe"
	"muster/server/sessions"
	"muster/server/tokens"
	"muster/server/web"
)

// Refusals counts and logs who was refused at the door.
type Refusals struct {
	log    hclog.Logger
	meters *metrics.Meters
	audit  *scribe.Scribe // nil: none
	now    func() time.Time

	mu    sync.Mutex
	since time.Time // of the minute that is counted
	lines int       // in that minute
}

// deniedLines bounds what a minute puts into the log: who is refused decides how often.
const deniedLines = 10

// Reasons are all reasons of a denial.
var Reasons = slices.Concat([]string{"no_token", "malformed", "proxy", foreignPage,
	"unknown_user", "no_group", "expired_certificate", "nameless_certificate"}, tokens.Reasons,
	sessions.Reasons)

// NewRefusals returns a count of refusals. a may be nil: there is no audit log.
func NewRefusals(log hclog.Logger, m *metrics.Meters, a *scribe.Scribe) *Refusals {
	return &Refusals{log: log, meters: m, audit: a, now: time.Now}
}

// out notes that a request was refused, if that was about who calls.
func (k *Refusals) out(r *http.Request, err error) {
	var d *denial
	if !errors.As(err, &d) {
		return // such as Redis that is away
	}
	k.Refused(r, d.reason)
}

// Refused notes that a request was refused for a reason.
func (k *Refusals) Refused(r *http.Request, reason string) {
	k.meters.Refused(reason)
	k.audit.RefusedLogin(reason, from(r))
	n := k.line()
	if n > deniedLines {
		return
	}
	k.log.Warn("login refused", "reason", reason, "from", from(r), "method", web.Clip(r.Method),
		"path", web.Clip(sessions.Shown(r.URL.Path)))
	if n == deniedLines {
		k.log.Warn("further refused logins of this minute are only counted",
			"metric", metrics.Refused)
	}
}

// line is the number of a line in its minute.
func (k *Refusals) line() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); now.Sub(k.since) >= time.Minute {
		k.since, k.lines = now, 0
	}
	k.lines++
	return k.lines
}

// from returns the address from which a request comes.
func from(r *http.Request) string {
	user, socket := r.Context().Value(peerKey{}).(peerUser)
	if !socket {
		return r.RemoteAddr
	}
	if p, err := user(); err == nil {
		return p.name
	}
	return "a unix socket"
}
