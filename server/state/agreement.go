package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/hub"
	"muster/server/agreed"
	"muster/server/web"
)

// AgreedKept reads and restores the agreements that Redis has.
type AgreedKept interface {
	AgreedState(ctx context.Context) (hub.AgreedState, error)
	AgreedPart(ctx context.Context, part string) (jobs.AgreedPart, error)
	LoseAgreed(ctx context.Context, lost jobs.AgreedLost) error
	RestoreAgreed(ctx context.Context, parts []jobs.AgreedPart, note string) error
	Believed(part jobs.AgreedPart) bool
}

// Agreement compares the agreements that Redis has with the copy that history keeps.
type Agreement struct {
	Kept    AgreedKept
	History *history.Store // nil: none
	Log     hclog.Logger
	Now     func() time.Time
	seen    atomic.Bool // Redis was compared with history since this server started
}

// Routes registers the routes of the resource.
func (a *Agreement) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/agreed",
		"Show the copy of windows, schedules and orders that history keeps"), a.report)
	huma.Register(api, web.Post("/v1/agreed/restore",
		"Restore windows, schedules and orders that Redis has lost"), a.restore)
	huma.Register(api, web.Post("/v1/agreed/forsake",
		"Continue without the windows, schedules and orders that Redis has lost"), a.forsake)
}

// errAgreedLost is the answer to a request that would begin work.
var errAgreedLost = errors.New("redis has lost what was agreed about times and schedules, and " +
	"nothing starts: `muster restore --dry-run` shows what history can put back")

// Known refuses new work if Redis has lost agreements, or may have: an empty Redis belongs to a new
// house, or to one of which history knows more.
func (a *Agreement) Known(ctx context.Context) error {
	state, err := a.Kept.AgreedState(ctx)
	if err != nil {
		return web.Problem(err)
	}
	var asked agreed.History
	if a.History != nil && !a.seen.Load() {
		asked = a.History
	}
	switch l := agreed.Compare(ctx, state.Parts, state.Lost, asked); {
	case l.Note != "":
		return web.Away(errAgreedLost.Error() + " (" + l.Note + ")")
	case l.Unasked != nil && l.Empty:
		return web.Away("redis knows of nothing that was agreed about times, and history, which would " +
			"know whether it has lost that, cannot be asked: " + l.Unasked.Error())
	case l.Unasked == nil && a.History != nil:
		a.seen.Store(true)
	} // Redis has what was agreed; a history that is away stops nobody
	return nil
}

type agreedOutput struct{ Body api.AgreedReport }

// report answers GET /v1/agreed.
func (a *Agreement) report(ctx context.Context, _ *web.Nothing) (*agreedOutput, error) {
	r, _, err := a.compare(ctx)
	if err != nil {
		return nil, err
	}
	return &agreedOutput{r}, nil
}

func (a *Agreement) compare(ctx context.Context) (r api.AgreedReport, back []jobs.AgreedPart,
	err error) {
	if a.History == nil {
		return r, nil, web.Problem(web.ErrNoHistory)
	}
	state, err := a.Kept.AgreedState(ctx)
	if err != nil {
		return r, nil, web.Problem(err)
	}
	kept, err := a.History.Agreed(ctx)
	if err != nil {
		return r, nil, web.Problem(err)
	}
	gone := agreed.Lost(kept, state.Parts)
	r = api.AgreedReport{Lost: state.Lost, Parts: []api.AgreedCopy{}}
	for _, part := range jobs.AgreedParts() {
		is, err := a.Kept.AgreedPart(ctx, part)
		if err != nil {
			return r, nil, web.Problem(err)
		}
		one := api.AgreedCopy{Part: part, Kept: kept[part].Words(), At: kept[part].At, Now: is.Words(),
			Comes: slices.Contains(gone, part)}
		if one.Comes {
			back = append(back, kept[part])
		}
		r.Parts = append(r.Parts, one)
	}
	return r, back, nil
}

// errNothingLost is the answer to a restore without a loss.
var errNothingLost = huma.Error409Conflict("Redis has lost nothing that history keeps: there is " +
	"nothing to restore")

// agreedLoss is an order about a loss, with the comparison behind it.
type agreedLoss struct {
	web.Giver
	report api.AgreedReport
	back   []jobs.AgreedPart // what history has, and Redis has lost
}

// lossOf reads such an order, and refuses it if nothing is lost.
func (a *Agreement) lossOf(ctx context.Context, in *web.Order, done string) (agreedLoss, error) {
	g, wrong := in.Reasoned(done)
	if len(wrong) > 0 {
		return agreedLoss{}, web.Refusal(wrong)
	}
	r, back, err := a.compare(ctx)
	if err == nil && r.Lost.Since.IsZero() && len(back) == 0 {
		err = errNothingLost
	}
	return agreedLoss{g, r, back}, err
}

// restore puts the lost agreements back.
func (a *Agreement) restore(ctx context.Context, in *web.Order) (*agreedOutput, error) {
	loss, err := a.lossOf(ctx, in, "restored")
	if err != nil {
		return nil, err
	}
	if err := a.Kept.RestoreAgreed(ctx, loss.back, loss.Note()); err != nil {
		return nil, web.Problem(err)
	}
	web.LogOrder(a.Log, "what was agreed is restored", loss.Giver, "parts", len(loss.back))
	return &agreedOutput{loss.report}, nil
}

// forsake accepts the loss: nothing comes back, and history keeps the rest from now on.
func (a *Agreement) forsake(ctx context.Context, in *web.Order) (*agreedOutput, error) {
	loss, err := a.lossOf(ctx, in, "given up")
	if err != nil {
		return nil, err
	}
	var whole []jobs.AgreedPart
	for i, part := range jobs.AgreedParts() {
		p, err := a.Kept.AgreedPart(ctx, part)
		if err != nil {
			return nil, web.Problem(err)
		}
		whole, loss.report.Parts[i].Comes = append(whole, p), false
	}
	if err := a.History.KeepAgreed(ctx, whole, a.Now()); err != nil {
		return nil, web.Problem(err)
	}
	if err := a.Kept.RestoreAgreed(ctx, nil, loss.Note()); err != nil {
		return nil, web.Problem(err)
	}
	web.LogOrder(a.Log, "what was agreed and lost is given up", loss.Giver, "parts", len(loss.back))
	return &agreedOutput{loss.report}, nil
}

// lost returns the sentence of health about a loss; empty if nothing is lost.
func (a *Agreement) lost(ctx context.Context) string {
	state, err := a.Kept.AgreedState(ctx)
	if err != nil || state.Lost.Since.IsZero() {
		return ""
	}
	return fmt.Sprintf("nothing starts: Redis has lost what was agreed, since %s: %s; "+
		"`muster restore` puts it back", state.Lost.Since, state.Lost.Note)
}
