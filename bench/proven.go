package main

import (
	"context"
	"time"

	"muster/internal/serverkey"
	"muster/trust"
)

// proven compares how fast jobs get through a queue whose workers prove each end, with the same
// without proofs.
func proven(ctx context.Context, b *bench) ([]row, error) {
	k, err := serverkey.Parse([]byte(serverkey.File("bench", [serverkey.Size]byte{1})))
	if err != nil {
		return nil, err
	}
	stamps := k.Stamps(serverkey.Results)
	n := b.size(20000)
	got, err := b.race(ctx, b.rounds, []contender{
		rate("16 takers × 1 slot", n, b.crewHeat(n, 16, 1)),
		rate("16 takers × 1 slot, proven", n, b.provenHeat(n, 16, 1, stamps)),
		rate("2 takers × 8 slots", n, b.crewHeat(n, 2, 8)),
		rate("2 takers × 8 slots, proven", n, b.provenHeat(n, 2, 8, stamps)),
	})
	if err != nil {
		return nil, err
	}
	const unit = "jobs/s"
	one, eight := newRow("muster, 16 takers × 1 slot", unit, got[0]),
		newRow("muster, 2 takers × 8 slots", unit, got[2])
	return []row{one,
		newRow("the same, proven", unit, got[1]).to("unproven", one).ratioAtLeast(0.95), eight,
		newRow("the same, proven", unit, got[3]).to("unproven", eight).ratioAtLeast(0.95)}, nil
}

// provenHeat is crewHeat for workers that prove each end.
func (b *bench) provenHeat(n, takers, slots int, stamps serverkey.Stamps) heat {
	return func(ctx context.Context, measure func(func() error) error) error {
		b.prove = func(t trust.Testimony) string { return t.Prove(stamps, time.Now()) }
		defer func() { b.prove = nil }()
		return b.drained(ctx, n, takers, slots, measure)
	}
}
