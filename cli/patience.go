package cli

import (
	"context"
	"errors"
	"time"
)

// TroubleWords names the problem while a call is repeated.
func TroubleWords(err error) string {
	var no *Refusal
	if errors.As(err, &no) {
		return "the server has trouble, trying again: " + no.words
	}
	return "the server does not answer, trying again"
}

// Sleep waits; it reports whether ctx is still active.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// EraseScreen clears the terminal and starts at its top.
const EraseScreen = "\x1b[H\x1b[2J"
