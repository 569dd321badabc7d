package hooks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/internal/proc"
)

// An AwayError says that a server of a zone has not answered. The other zones do not need it.
type AwayError struct {
	Server string // its URL, without a password
	Err    error
}

func (e *AwayError) Error() string { return fmt.Sprintf("%s is away: %v", e.Server, e.Err) }

// Unwrap returns the cause.
func (e *AwayError) Unwrap() error { return e.Err }

// A Breaker keeps those who call many servers from waiting for one that does not answer: after a
// call without an answer all calls to it fail at once, but for one each Again. That a caller has
// given up says nothing about the server.
type Breaker struct {
	Server string
	Again  time.Duration

	broken atomic.Pointer[outage]
}

type outage struct {
	err  error
	next time.Duration // on the boot clock: the next call that may try
}

// DialHook implements redis.Hook.
func (b *Breaker) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (b *Breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := b.do(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
		if away := new(AwayError); errors.As(err, &away) {
			cmd.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (b *Breaker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := b.do(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
		if away := new(AwayError); errors.As(err, &away) {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// trying is the key of a context for a call to a server that was away. The calls with which the
// client greets the server on a new connection are part of it.
type trying struct{}

// do makes a call, unless the server is known to be away. Its error wraps an *AwayError if there
// was no answer.
func (b *Breaker) do(ctx context.Context, call func(context.Context) error) error {
	if ctx.Value(trying{}) != nil {
		return call(ctx)
	}
	was := b.broken.Load()
	if was != nil {
		now := proc.Boot()
		if now < was.next || !b.broken.CompareAndSwap(was, &outage{was.err, now + b.Again}) {
			return &AwayError{b.Server, was.err}
		}
	}
	begun := b.broken.Load()
	err := call(context.WithValue(ctx, trying{}, b))
	end, bounded := ctx.Deadline()
	switch gone := ctx.Err() != nil || bounded && !time.Now().Before(end); {
	case !unusable(err):
		if !gone && begun != nil {
			b.broken.CompareAndSwap(begun, nil)
		}
		return err
	case gone:
		return err
	}
	b.broken.CompareAndSwap(begun, &outage{err, proc.Boot() + b.Again}) // else somebody knows better
	return &AwayError{b.Server, err}
}

// refusals begin the answers of a server that serves nobody now.
var refusals = []string{"LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOAUTH", "WRONGPASS",
	"ERR max number of clients", "ERR invalid password"}

// unusable reports whether an error means that the server has not answered in time, cannot be
// reached, or serves nobody.
func unusable(err error) bool {
	var network net.Error
	var proof *tls.CertificateVerificationError
	var said redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return false
	case errors.As(err, &network), errors.As(err, &proof), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, redis.ErrPoolTimeout),
		errors.As(err, new(*AwayError)):
		return true
	case errors.As(err, &said):
		return slices.ContainsFunc(refusals, func(sign string) bool {
			return strings.HasPrefix(said.Error(), sign)
		})
	}
	return false
}
