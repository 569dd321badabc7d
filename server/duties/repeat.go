package duties

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Round is one round of something that a server does again and again.
type Round func(context.Context) error

// Repeat does a round at once and then one after each pause, until ctx is done. It logs once
// what goes wrong, and when that is over.
func Repeat(ctx context.Context, log hclog.Logger, what string, pause time.Duration, do Round) {
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	said := ""
	for {
		trouble := ""
		if err := do(ctx); err != nil {
			trouble = err.Error()
		}
		switch {
		case ctx.Err() != nil:
			return
		case trouble != "" && trouble != said:
			log.Warn("duties", "of", what, "trouble", trouble)
		case trouble == "" && said != "":
			log.Info("duties", "of", what, "trouble", "over")
		}
		said = trouble
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}
