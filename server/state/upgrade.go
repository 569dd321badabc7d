package state

import (
	"context"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/form"
	"muster/server/web"
)

// Forms keeps which servers run, and which form the data has.
type Forms interface {
	Declare(ctx context.Context, version string) error
	ReportServer(ctx context.Context, server, version string) error
	SignOff(ctx context.Context, server string) error
	Servers(ctx context.Context) ([]form.Server, error)
	InUse(ctx context.Context) ([]form.Place, error)
}

// silentAfter is the time after which a server that has not reported counts as gone.
const silentAfter = 3 * FormEvery

type upgradeOutput struct{ Body api.UpgradeState }

// UpgradeRoutes shows how far an upgrade of the servers is.
type UpgradeRoutes struct {
	Forms   Forms
	History *history.Store // nil: none
	Version string
}

// Routes registers the routes of the resource.
func (s UpgradeRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/upgrade", "Show the versions of servers and the forms of data"),
		s.state)
}

func (s UpgradeRoutes) state(ctx context.Context, _ *web.Nothing) (*upgradeOutput, error) {
	out := &upgradeOutput{api.UpgradeState{Version: s.Version, Servers: []api.Serving{}}}
	servers, err := s.Forms.Servers(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	for _, one := range servers {
		out.Body.Servers = append(out.Body.Servers, api.Serving{Server: one.Name, Version: one.Version,
			Seen: jobs.Time{Time: one.Seen}, Gone: time.Since(one.Seen) > silentAfter})
	}
	places, err := s.Forms.InUse(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	for _, p := range places {
		d := api.DataForm{Where: p.Where, Has: p.Has, By: p.By, Knows: strconv.Itoa(form.Mine)}
		if wrong := form.Check(p.Where, p.Has, p.By); wrong != nil {
			d.Wrong = wrong.Error()
		}
		out.Body.Forms = append(out.Body.Forms, d)
	}
	if s.History == nil {
		return out, nil
	}
	sql := api.DataForm{Where: "the tables of history"}
	has, known, err := history.FormOf(ctx, s.History)
	switch {
	case err != nil:
		sql.Wrong = "it is not known: " + err.Error()
	case has > known:
		sql.Wrong = "a newer muster has changed the tables: run that one here, too"
		fallthrough
	default:
		sql.Has, sql.Knows = strconv.FormatInt(has, 10), strconv.FormatInt(known, 10)
	}
	out.Body.Forms = append(out.Body.Forms, sql)
	return out, nil
}
