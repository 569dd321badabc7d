package rights

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/server/web"
)

// LookAgain is the time after which a request that still lasts is held against the policy again.
const LookAgain = time.Second

// watch looks again and again whether the caller of a request still may make it, and ends the
// context of the request if not. As long as the caller may, the request goes on with the view that
// the present policy gives. Only a request that lasts costs anything: a stream, an export, a wait.
// Orders are not ended in their middle.
func (g Gate) watch(ctx huma.Context, x *web.Exchange, n need, sight *web.Sight) (huma.Context,
	func()) {
	if ctx.Method() != http.MethodGet {
		return ctx, func() {}
	}
	life, end := context.WithCancel(ctx.Context())
	ctx = huma.WithContext(ctx, life)
	until := x.Who.Until
	first := time.AfterFunc(LookAgain, func() {
		defer end()
		next := time.NewTicker(LookAgain)
		defer next.Stop()
		for {
			if err := g.again(ctx, x, n, sight); ends(err, until) {
				return
			}
			select {
			case <-life.Done():
				return
			case <-next.C:
			}
		}
	})
	return ctx, func() { first.Stop(); end() }
}

// again identifies the caller of a request anew, and replaces the view of the request.
func (g Gate) again(ctx huma.Context, x *web.Exchange, n need, sight *web.Sight) error {
	if x.Again == nil { // nobody can say who that is
		return huma.Error403Forbidden("nobody says who asks")
	}
	who, err := x.Again()
	if err != nil {
		return err
	}
	v := web.NewView(g.Keeper.Rights(), whoOf(who))
	if err := g.check(ctx, v, n); err != nil {
		return err
	}
	if !v.Same(sight.Load()) {
		sight.Store(v)
	}
	return nil
}

// ends reports whether an error of a second look ends the request. A Redis that is away says
// nothing about rights, unless the proof of the caller has ended by itself, at until.
func ends(err error, until time.Time) bool {
	if err == nil {
		return false
	}
	var answer huma.StatusError
	if errors.As(err, &answer) && answer.GetStatus() < http.StatusInternalServerError {
		return true
	}
	return !until.IsZero() && time.Now().After(until)
}
