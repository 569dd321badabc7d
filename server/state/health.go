package state

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/history"
	"muster/jobs/quarantine"
	"muster/jobs/queue"
	"muster/server/calendar"
	"muster/server/historian"
	"muster/server/metrics"
	"muster/server/stock"
	"muster/server/web"
)

type (
	healthInput  struct{ web.Asked }
	healthOutput struct {
		Status int
		Body   api.Health
	}
)

// Health says whether the server can work, and what keeps work from starting.
type Health struct {
	Queue        Queue
	Stock        *stock.Store
	History      *history.Store // nil: none
	Trouble      *historian.Trouble
	Agreed       *Agreement
	Calendar     *calendar.Calendar
	Form         func() string // says why this server changes nothing
	Policy       func() string // says why a changed access file is not in force
	Audit        Audit
	Reviews      func(ctx context.Context) string // says which reviews of broken glass are open
	Untold       func(ctx context.Context) string // says what is wrong with notifications
	Repositories func(ctx context.Context) string // says what is wrong with repositories
	// Aside returns the hosts in quarantine.
	Aside   func(ctx context.Context) (map[string]quarantine.Mark, error)
	Who     func() string // returns the name of this server
	Version string
}

// Audit says what is wrong with the audit log, and its numbers.
type Audit interface {
	Words(ctx context.Context) string
	Gauges(ctx context.Context) (*metrics.Audit, error)
}

// Routes registers the routes of the resource.
func (s Health) Routes(api huma.API) {
	huma.Register(api, web.Get(web.HealthPath, "Show whether the server can work"), s.health)
}

// A finding is what is wrong with one part of the house.
type finding struct {
	part metrics.Part
	text string
}

// findings lists what is wrong, in the order of health.
type findings []finding

func (f *findings) add(part metrics.Part, text string) {
	if text != "" {
		*f = append(*f, finding{part, text})
	}
}

// health answers GET /v1/health. Strangers get one word.
func (s Health) health(ctx context.Context, in *healthInput) (*healthOutput, error) {
	out := &healthOutput{http.StatusOK, api.Health{Status: "ok", Redis: "ok", Version: s.Version}}
	if st := s.Stock.Now(); st != nil {
		out.Body.Inventory, out.Body.Hosts = st.Version, st.Len()
	}
	// More is for those who see the whole house.
	more := in.Caller().Trusted() && web.ViewOf(ctx).All()
	wrong, err := s.look(ctx, more)
	full := errors.Is(err, queue.ErrFull)
	if err != nil {
		out.Body.Redis = err.Error()
	}
	if err != nil && !full {
		out.Status = http.StatusServiceUnavailable
	}
	if !more {
		out.Body = api.Health{Status: "ok"}
	}
	if aside, err := s.Aside(ctx); more && err == nil {
		out.Body.Quarantined = len(aside)
	}
	out.Body.Full = full
	words := make([]string, len(wrong))
	for i, f := range wrong {
		words[i] = f.text
		out.Body.Doubt = out.Body.Doubt || f.part == metrics.PartTimes
		out.Body.Stopped = out.Body.Stopped || f.part == metrics.PartStopped ||
			f.part == metrics.PartAgreed
	}
	if len(words) > 0 {
		out.Body.Status = strings.Join(words, "; ")
	}
	return out, nil
}

// look returns what is wrong, and the error of a Redis that takes nothing new.
func (s Health) look(ctx context.Context, more bool) (wrong findings, redis error) {
	redis = s.Queue.Conn.Writes(ctx)
	away := false
	switch {
	case errors.Is(redis, queue.ErrFull):
		// No other server fares better, and here people can still look, and cancel.
		wrong.add(metrics.PartRedis, "redis is full: submits are refused")
	case redis != nil:
		away = true
		wrong.add(metrics.PartRedis, "redis cannot be used")
	}
	if !more {
		return wrong, redis
	}
	if !away {
		wrong.add(metrics.PartTimes, s.doubtOfTimes(ctx))
	}
	wrong.add(metrics.PartInventory, s.Stock.Complaint())
	wrong.add(metrics.PartForm, s.Form())
	if text := s.Policy(); text != "" {
		wrong.add(metrics.PartAccess, "the changed access file is not in force: "+text)
	}
	wrong.add(metrics.PartUnserved, s.unstaffed(ctx))
	wrong.add(metrics.PartAgreed, s.Agreed.lost(ctx))
	for _, text := range (standstill{s.Queue, s.History != nil}).words(ctx) {
		wrong.add(metrics.PartStopped, text)
	}
	// Another line says that Redis is away; the own tries of this server are newer.
	a, _ := Away(ctx, s.Queue, s.History)
	if text := s.Trouble.Words(); text != "" && !away {
		wrong.add(metrics.PartHistory, "history is not written: "+text)
	} else if a != nil {
		wrong.add(metrics.PartHistory, a.Words())
	}
	wrong.add(metrics.PartAudit, s.Audit.Words(ctx))
	wrong.add(metrics.PartReviews, s.Reviews(ctx))
	wrong.add(metrics.PartNotify, s.Untold(ctx))
	wrong.add(metrics.PartRepositories, s.Repositories(ctx))
	return wrong, redis
}
