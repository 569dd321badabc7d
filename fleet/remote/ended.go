package remote

import "context"

// An overError explains that the time for an operation is over or that it was cancelled.
type overError struct {
	words string
	cause error
}

// Error returns the words.
func (e *overError) Error() string { return e.words }

// Unwrap returns the error of the context.
func (e *overError) Unwrap() error { return e.cause }

// ended returns why ctx ended, or nil if it has not. If the creator of the context gave a cause,
// that cause already explains what took too long. Otherwise ended replaces errors such as
// "context deadline exceeded", which mean nothing to users.
func ended(ctx context.Context) error {
	switch cause := context.Cause(ctx); cause {
	case context.DeadlineExceeded:
		return &overError{"it took longer than it may", cause}
	case context.Canceled:
		return &overError{"it was called off", cause}
	default:
		return cause
	}
}
