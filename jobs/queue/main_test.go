package queue_test

import (
	"context"
	"os"
	"testing"

	"pgregory.net/rapid"

	"muster/jobs/queue"
)

func TestMain(m *testing.M) {
	queue.Quiet()
	os.Exit(m.Run())
}

// tctx is the context of a rapid check.
func tctx(t *rapid.T) context.Context { return t.Context() }
