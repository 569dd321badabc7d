package web

import (
	"context"
	"time"
)

type sinceKey struct{}

// WithSince returns a context whose questions may get the answer of another caller, if the server
// began to make that at or after an instant: an open page looks again and again, and others look at
// the same things. The gate checks the rights of each question all the same.
func WithSince(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, sinceKey{}, at)
}

// Since returns the instant of WithSince; false: the answer must be made for this question.
func Since(ctx context.Context) (at time.Time, shared bool) {
	at, shared = ctx.Value(sinceKey{}).(time.Time)
	return at, shared
}
