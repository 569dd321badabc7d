package server

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

// wellbeing says whether the server can work, and what keeps work from starting.
type wellbeing struct {
	queue    Stores
	stock    *stock.Store
	history  *history.Store // nil: none
	trouble  *historian.Trouble
	agreed   *agreement
	calendar *calendar.Calendar
	who      func() string // the name of this server
	version  string
}

func (s wellbeing) Routes(api huma.API) {
	huma.Register(api, web.Get(healthPath, "Tell whether the server can work"), s.health)
}

// health says whether the server can work. Strangers hear no more than that.
func (s wellbeing) health(ctx context.Context, in *healthInput) (*healthOutput, error) {
	out := &healthOutput{http.StatusOK, api.Health{Status: "ok", Redis: "ok", Version: s.version}}
	if st := s.stock.Now(); st != nil {
		out.Body.Inventory, out.Body.Hosts = st.Version, st.Len()
	}
	var wrong []string
	err := s.queue.Conn.Writes(ctx)
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
	if in.Caller().Trusted() {
		if text := s.doubtOfTimes(ctx); text != "" && out.Status == http.StatusOK {
			wrong = append(wrong, text)
			out.Body.Doubt = true
		}
		if text := s.stock.Complaint(); text != "" {
			wrong = append(wrong, text)
		}
		if text := s.unstaffed(ctx); text != "" {
			wrong = append(wrong, text)
		}
		for _, stops := range []string{s.agreed.lost(ctx), s.owing(ctx)} {
			if stops != "" {
				wrong, out.Body.Stopped = append(wrong, stops), true
			}
		}
		// Redis that is away is said already, and what this server itself tried is newer.
		a, _ := awayHistory(ctx, s.queue, s.history)
		if text := s.trouble.Words(); text != "" && out.Status == http.StatusOK {
			wrong = append(wrong, "history is not written: "+text)
		} else if a != nil {
			wrong = append(wrong, a.Words())
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

// owing says, for people, which zone waits for history; empty: none does.
func (s wellbeing) owing(ctx context.Context) string {
	zones, err := s.queue.Conn.Zones(ctx)
	if err != nil {
		return "" // that Redis cannot be used is said already
	}
	debts, _ := s.queue.Care.Debts.Debts(ctx, zones) // of those that can be read
	for _, d := range debts {
		if d.Owed == "" {
			continue
		}
		text := "nothing starts in zone " + d.Zone + " before history was asked what has ended: Redis " +
			"may have forgotten it"
		if s.history == nil {
			text += "; this server keeps no history"
		}
		return text + ". To start without: `muster nodes thaw --zone " + d.Zone + " --reason …`"
	}
	return ""
}
