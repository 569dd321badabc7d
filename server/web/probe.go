package web

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
)

type probeKey struct{}

// WithProbe returns a context whose requests only ask whether the caller may make them: none is
// carried out. The answer to one that is allowed has the status 204 and nothing else.
func WithProbe(ctx context.Context) context.Context {
	return context.WithValue(ctx, probeKey{}, true)
}

// Probes reports whether a request only asks whether it is allowed.
func Probes(ctx context.Context) bool { return ctx.Value(probeKey{}) != nil }

// Probing answers requests that only ask, and passes on all others. It is a middleware behind the
// one that holds requests against the policy.
func Probing(ctx huma.Context, next func(huma.Context)) {
	if Probes(ctx.Context()) {
		ctx.SetStatus(204)
		return
	}
	next(ctx)
}
