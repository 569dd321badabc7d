package web

import "context"

// WhileAgreed wraps an order that changes an agreement, such as a window. It refuses the order
// while whole returns an error, which it does as long as Redis lacks some agreement. A restore
// puts back whole parts, so it would take away an order of that time, or the order would hide the
// loss. Nothing starts in that time, so no order is urgent but a halt, which changes no
// agreement.
func WhileAgreed[I, O any](whole func(context.Context) error,
	do func(context.Context, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		if err := whole(ctx); err != nil {
			return nil, err
		}
		return do(ctx, in)
	}
}
