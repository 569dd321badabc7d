package remote

import "context"

// An overError says in words that the time for something is over, or that it was called off.
type overError struct {
	words string
	cause error
}

// Error returns the words.
func (e *overError) Error() string { return e.words }

// Unwrap returns the error of the context.
func (e *overError) Unwrap() error { return e.cause }

// ended returns why ctx ended, nil if it has not. Who gave the context a cause of his own has said
// what took too long; of any other it is said that it did, as "context deadline exceeded" tells
// nobody anything.
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
