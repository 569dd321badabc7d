package server

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
)

// keptOut counts and logs who was refused at the door.
type keptOut struct {
	log   hclog.Logger
	count *prometheus.CounterVec // by reason
	now   func() time.Time

	mu    sync.Mutex
	since time.Time // of the minute that is counted
	lines int       // in that minute
}

// deniedLines bounds what a minute puts into the log: who is refused decides how often.
const deniedLines = 10

func newKeptOut(log hclog.Logger, registry *prometheus.Registry) *keptOut {
	k := &keptOut{log: log, now: time.Now, count: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_logins_refused_total",
		Help: "Requests that this server refused because nobody proved who calls, by reason."},
		[]string{"reason"})}
	for _, reason := range []string{"no_token", "unknown_token", "malformed", "proxy", "foreign_page",
		"unknown_user", "no_group"} {
		k.count.WithLabelValues(reason)
	}
	registry.MustRegister(k.count)
	return k
}

// out notes that a request was refused, if that was about who calls.
func (k *keptOut) out(r *http.Request, err error) {
	var d *denial
	if !errors.As(err, &d) {
		return // such as Redis that is away
	}
	k.count.WithLabelValues(d.reason).Inc()
	n := k.line()
	if n > deniedLines {
		return
	}
	k.log.Warn("login refused", "reason", d.reason, "from", from(r), "method", clip(r.Method),
		"path", clip(r.URL.Path))
	if n == deniedLines {
		k.log.Warn("further refused logins of this minute are only counted",
			"metric", "muster_logins_refused_total")
	}
}

// line is the number of a line in its minute.
func (k *keptOut) line() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); now.Sub(k.since) >= time.Minute {
		k.since, k.lines = now, 0
	}
	k.lines++
	return k.lines
}

// from is where a request comes from.
func from(r *http.Request) string {
	user, socket := r.Context().Value(peerKey{}).(peerUser)
	if !socket {
		return r.RemoteAddr
	}
	if name, err := user(); err == nil {
		return name
	}
	return "a unix socket"
}
