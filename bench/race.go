package main

import (
	"context"
	"fmt"
	"time"
)

// A contender is one way to do the work of a section. It returns its figure of
// one round.
type contender struct {
	name string
	run  func(ctx context.Context) (float64, error)
}

// race lets all contenders have their turn in every round, in an order that
// changes, and returns the figures of each.
func (b *bench) race(ctx context.Context, rounds int, all []contender) ([][]float64, error) {
	out := make([][]float64, len(all))
	for round := range rounds {
		for i := range all {
			i = (i + round) % len(all)
			x, err := all[i].run(ctx)
			if ctx.Err() != nil {
				return nil, ctx.Err() // what it broke is not worth a word
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
			fmt.Fprintf(b.say, "round %d of %d: %s: %s\n", round+1, rounds, all[i].name, number(x))
			out[i] = append(out[i], x)
		}
	}
	return out, nil
}

// perSecond is the rate of n things since an instant.
func perSecond(n int, since time.Time) float64 { return float64(n) / time.Since(since).Seconds() }

// micros is a duration in µs for each of n things.
func micros(d time.Duration, n int) float64 {
	return float64(d) / float64(time.Microsecond) / float64(n)
}
