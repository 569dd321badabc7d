package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue/hub"
	"muster/server/agreed"
)

// AgreedKept is what Redis has of what people have agreed, and how it gets that back.
type AgreedKept interface {
	AgreedState(ctx context.Context) (hub.AgreedState, error)
	AgreedPart(ctx context.Context, part string) (jobs.AgreedPart, error)
	LoseAgreed(ctx context.Context, lost jobs.AgreedLost) error
	RestoreAgreed(ctx context.Context, parts []jobs.AgreedPart, note string) error
}

// agreedWatch is what one server has seen of it.
type agreedWatch struct {
	seen atomic.Bool // Redis was compared with history since this server started
}

// errAgreedLost is the answer to who wants to begin something.
var errAgreedLost = errors.New("redis has lost what was agreed about times and schedules, and " +
	"nothing starts: `muster restore --dry-run` shows what history can put back")

// agreedKnown refuses new work where Redis has lost what was agreed, or may have: an empty Redis
// belongs to a new house, or to one of which history knows more.
func (s *Server) agreedKnown(ctx context.Context) error {
	state, err := s.queue.Hub.Agreed.AgreedState(ctx)
	if err != nil {
		return problem(err)
	}
	var asked agreed.History
	if s.history != nil && !s.agreed.seen.Load() {
		asked = s.history
	}
	switch l := agreed.Compare(ctx, state.Parts, state.Lost, asked); {
	case l.Note != "":
		return away(errAgreedLost.Error() + " (" + l.Note + ")")
	case l.Unasked != nil && l.Empty:
		return away("redis knows of nothing that was agreed about times, and history, which would " +
			"know whether it has lost that, cannot be asked: " + l.Unasked.Error())
	case l.Unasked == nil && s.history != nil:
		s.agreed.seen.Store(true)
	} // Redis has what was agreed; a history that is away stops nobody
	return nil
}

type agreedOutput struct{ Body api.AgreedReport }

// agreedReport compares both.
func (s *Server) agreedReport(ctx context.Context, _ *nothing) (*agreedOutput, error) {
	r, _, err := s.compareAgreed(ctx)
	if err != nil {
		return nil, err
	}
	return &agreedOutput{r}, nil
}

func (s *Server) compareAgreed(ctx context.Context) (r api.AgreedReport, back []jobs.AgreedPart,
	err error) {
	if s.history == nil {
		return r, nil, problem(errNoHistory)
	}
	state, err := s.queue.Hub.Agreed.AgreedState(ctx)
	if err != nil {
		return r, nil, problem(err)
	}
	kept, err := s.history.Agreed(ctx)
	if err != nil {
		return r, nil, problem(err)
	}
	gone := agreed.Lost(kept, state.Parts)
	r = api.AgreedReport{Lost: state.Lost, Parts: []api.AgreedCopy{}}
	for _, part := range jobs.AgreedParts() {
		is, err := s.queue.Hub.Agreed.AgreedPart(ctx, part)
		if err != nil {
			return r, nil, problem(err)
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

// errNothingLost is the answer to who wants to restore what is there.
var errNothingLost = huma.Error409Conflict("Redis has lost nothing that history keeps: there is " +
	"nothing to restore")

// agreedLoss is what an order about a loss is about.
type agreedLoss struct {
	giver
	report api.AgreedReport
	back   []jobs.AgreedPart // what history has, and Redis has lost
}

// agreedLoss reads such an order, and refuses it if nothing is lost.
func (s *Server) agreedLoss(ctx context.Context, in *Order, done string) (agreedLoss, error) {
	g, wrong := in.reasoned(done)
	if len(wrong) > 0 {
		return agreedLoss{}, refusal(wrong)
	}
	r, back, err := s.compareAgreed(ctx)
	if err == nil && r.Lost.Since.IsZero() && len(back) == 0 {
		err = errNothingLost
	}
	return agreedLoss{g, r, back}, err
}

// restore puts back what Redis has lost.
func (s *Server) restore(ctx context.Context, in *Order) (*agreedOutput, error) {
	loss, err := s.agreedLoss(ctx, in, "restored")
	if err != nil {
		return nil, err
	}
	if err := s.queue.Hub.Agreed.RestoreAgreed(ctx, loss.back, loss.note()); err != nil {
		return nil, problem(err)
	}
	logOrder(s.log, "what was agreed is restored", loss.giver, "parts", len(loss.back))
	return &agreedOutput{loss.report}, nil
}

// forsake goes on with what Redis has: nothing comes back, and history keeps that from now on.
func (s *Server) forsake(ctx context.Context, in *Order) (*agreedOutput, error) {
	loss, err := s.agreedLoss(ctx, in, "given up")
	if err != nil {
		return nil, err
	}
	var whole []jobs.AgreedPart
	for i, part := range jobs.AgreedParts() {
		p, err := s.queue.Hub.Agreed.AgreedPart(ctx, part)
		if err != nil {
			return nil, problem(err)
		}
		whole, loss.report.Parts[i].Comes = append(whole, p), false
	}
	if err := s.history.KeepAgreed(ctx, whole, s.now()); err != nil {
		return nil, problem(err)
	}
	if err := s.queue.Hub.Agreed.RestoreAgreed(ctx, nil, loss.note()); err != nil {
		return nil, problem(err)
	}
	logOrder(s.log, "what was agreed and lost is given up", loss.giver, "parts", len(loss.back))
	return &agreedOutput{loss.report}, nil
}

// lostAgreed says it in health; empty: nothing is lost.
func (s *Server) lostAgreed(ctx context.Context) string {
	state, err := s.queue.Hub.Agreed.AgreedState(ctx)
	if err != nil || state.Lost.Since.IsZero() {
		return ""
	}
	return fmt.Sprintf("nothing starts: Redis has lost what was agreed, since %s: %s; "+
		"`muster restore` puts it back", state.Lost.Since, state.Lost.Note)
}

// mayBegin refuses new work that could not be done as was agreed, and makes sure that Redis has
// the inventory with which it was planned: jobs whose host Redis does not know fail.
func (s *Server) mayBegin(ctx context.Context) error {
	if err := s.agreedKnown(ctx); err != nil {
		return err
	}
	return problem(s.stock.Compare(ctx))
}
