package state

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/history"
	"muster/jobs/queue"
	"muster/server/calendar"
	"muster/server/historian"
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
	Queue    Queue
	Stock    *stock.Store
	History  *history.Store // nil: none
	Trouble  *historian.Trouble
	Agreed   *Agreement
	Calendar *calendar.Calendar
	Form     func() string // says why this server changes nothing
	Policy   func() string // says why a changed access file is not in force
	Audit    interface {
		Words(ctx context.Context) string
	} // says what is wrong with the audit log
	Reviews func(ctx context.Context) string // says which reviews of broken glass are open
	Untold  func(ctx context.Context) string // says what is wrong with notifications
	Who     func() string                    // returns the name of this server
	Version string
}

// Routes registers the routes of the resource.
func (s Health) Routes(api huma.API) {
	huma.Register(api, web.Get(web.HealthPath, "Show whether the server can work"), s.health)
}

// health answers GET /v1/health. Strangers get one word.
func (s Health) health(ctx context.Context, in *healthInput) (*healthOutput, error) {
	out := &healthOutput{http.StatusOK, api.Health{Status: "ok", Redis: "ok", Version: s.Version}}
	if st := s.Stock.Now(); st != nil {
		out.Body.Inventory, out.Body.Hosts = st.Version, st.Len()
	}
	var wrong []string
	err := s.Queue.Conn.Writes(ctx)
	full := errors.Is(err, queue.ErrFull)
	switch {
	case full:
		// No other server fares better, and here people can still look, and cancel.
		out.Body.Redis = err.Error()
		wrong = append(wrong, "redis is full: submits are refused")
	case err != nil:
		out.Status, out.Body.Redis = http.StatusServiceUnavailable, err.Error()
		wrong = append(wrong, "redis cannot be used")
	}
	// More is for those who see the whole house.
	if in.Caller().Trusted() && web.ViewOf(ctx).All() {
		if text := s.doubtOfTimes(ctx); text != "" && out.Status == http.StatusOK {
			wrong = append(wrong, text)
			out.Body.Doubt = true
		}
		if text := s.Stock.Complaint(); text != "" {
			wrong = append(wrong, text)
		}
		if text := s.Form(); text != "" {
			wrong = append(wrong, text)
		}
		if text := s.Policy(); text != "" {
			wrong = append(wrong, "the changed access file is not in force: "+text)
		}
		if text := s.unstaffed(ctx); text != "" {
			wrong = append(wrong, text)
		}
		stops := standstill{s.Queue, s.History != nil}.words(ctx)
		if text := s.Agreed.lost(ctx); text != "" {
			stops = append([]string{text}, stops...)
		}
		wrong, out.Body.Stopped = append(wrong, stops...), len(stops) > 0
		// Another line says that Redis is away; the own tries of this server are newer.
		a, _ := Away(ctx, s.Queue, s.History)
		if text := s.Trouble.Words(); text != "" && out.Status == http.StatusOK {
			wrong = append(wrong, "history is not written: "+text)
		} else if a != nil {
			wrong = append(wrong, a.Words())
		}
		for _, words := range []func(context.Context) string{s.Audit.Words, s.Reviews,
			s.Untold} {
			if text := words(ctx); text != "" {
				wrong = append(wrong, text)
			}
		}
	} else {
		out.Body = api.Health{Status: "ok"}
	}
	out.Body.Full = full
	if len(wrong) > 0 {
		out.Body.Status = strings.Join(wrong, "; ")
	}
	return out, nil
}
