package historian

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/jobs"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/keys"
	"muster/server/agreed"
)

// Guard keeps work from starting in a Redis that has forgotten something, until it has that back
// from history.
type Guard struct {
	Agreed Agreed
	Copies Copies
	Debts  Debts
	Recall Recalling
	Past   Past
	Log    hclog.Logger
	Now    func() time.Time

	lost     bool      // Redis has lost what was agreed
	compared time.Time // when that was last compared
}

// Agreed is the state of what people have agreed in Redis.
type Agreed interface {
	AgreedState(ctx context.Context) (hub.AgreedState, error)
	AgreedPart(ctx context.Context, part string) (jobs.AgreedPart, error)
	LoseAgreed(ctx context.Context, lost jobs.AgreedLost) error
	// Believed reports whether servers have signed a part, if they sign it at all.
	Believed(part jobs.AgreedPart) bool
}

// agreedEvery is the time between two comparisons of what was agreed.
const agreedEvery = 2 * time.Second

// RunOnce compares Redis with history, and gives the zones back what they lack.
func (g *Guard) RunOnce(ctx context.Context, zones []string) error {
	if now := g.Now(); g.lost || now.Sub(g.compared) >= agreedEvery || now.Before(g.compared) {
		k := agreedKeeper{g.Agreed, g.Copies, g.Log, g.Now}
		var err error
		if g.lost, err = k.check(ctx); err != nil {
			return err
		}
		g.compared = now
	}
	// Redis may have forgotten its list of zones, too.
	known, err := g.Past.Positions(ctx)
	if err != nil {
		return err
	}
	for _, p := range known {
		if p.Zone != keys.HubZone && !slices.Contains(zones, p.Zone) {
			zones = append(zones, p.Zone)
		}
	}
	return recaller{g.Debts, g.Recall, g.Past, g.Log, g.lost}.settle(ctx, zones)
}

// Copies keeps what people have agreed outside of Redis.
type Copies interface {
	KeepAgreed(ctx context.Context, parts []jobs.AgreedPart, now time.Time) error
	Agreed(ctx context.Context) (map[string]jobs.AgreedPart, error)
}

// agreedKeeper keeps in history what people have agreed, and notices when Redis has lost it.
type agreedKeeper struct {
	queue   Agreed
	history Copies
	log     hclog.Logger
	now     func() time.Time
}

// check compares Redis with the copies, and keeps what is new. It reports whether Redis has lost
// something; then it keeps nothing, or the copies would lose the same.
func (k agreedKeeper) check(ctx context.Context) (lost bool, err error) {
	now, err := k.queue.AgreedState(ctx)
	if err != nil || !now.Lost.Since.IsZero() {
		return err == nil, err
	}
	kept, err := k.history.Agreed(ctx)
	if err != nil {
		return false, err
	}
	if gone := agreed.Lost(kept, now.Parts); len(gone) > 0 {
		lost := jobs.AgreedLost{Since: jobs.Time{Time: k.now()}, Note: agreed.Words(kept, gone)}
		k.log.Error("Redis has lost what was agreed: nothing starts", "lost", lost.Note,
			"help", "muster restore")
		return true, k.queue.LoseAgreed(ctx, lost)
	}
	return false, k.keep(ctx, kept, now.Parts)
}

// keep keeps the parts that have changed.
func (k agreedKeeper) keep(ctx context.Context, kept, now map[string]jobs.AgreedPart) error {
	var changed []jobs.AgreedPart
	for _, part := range jobs.AgreedParts() {
		was, is := kept[part], now[part]
		if was.Mark == is.Mark && (is.Fields == nil || maps.Equal(was.Fields, is.Fields)) {
			continue
		}
		whole, err := k.queue.AgreedPart(ctx, part)
		if err != nil {
			return err
		}
		if k.queue.Believed(whole) {
			changed = append(changed, whole)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return k.history.KeepAgreed(ctx, changed, k.now())
}
