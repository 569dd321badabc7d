package queue_test

import (
	"context"
	"flag"
	"os"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"muster/jobs/queue/hooks"
	"muster/testkit/redistest"
)

func TestMain(m *testing.M) {
	hooks.Quiet()
	// Most tests wait for servers, and none needs a processor for itself.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	lasting.End()
	os.Exit(code)
}

// lasting holds the servers that all tests share, because each takes seconds to start.
var lasting = &redistest.Lasting{}

var (
	sharedSentinels = sync.OnceValue(func() *redistest.Sentinels {
		return redistest.StartSentinels(lasting, 1).Steady(lasting)
	})
	sharedCluster = sync.OnceValue(func() *redistest.Cluster {
		return redistest.StartCluster(lasting, false).Steady(lasting)
	})
	sharedApart = sync.OnceValue(func() *redistest.Apart { return redistest.StartApart(lasting, zone) })
)

// tctx is the context of a rapid check.
func tctx(t *rapid.T) context.Context { return t.Context() }
