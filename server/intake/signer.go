package intake

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"muster/internal/serverkey"
	"muster/jobs/queue/codec"
	"muster/server/draft"
	"muster/trust"
)

// A Signer reads the key of servers, with which orders are signed; nil: they are not.
type Signer func() (serverkey.Keys, error)

// checkHold returns the mistake of a task that cannot wait for signatures.
func (s Signer) checkHold() error {
	if s == nil {
		return errKeyless
	}
	keys, err := s()
	if err == nil && keys.None() {
		err = errKeyless
	}
	return err
}

var errKeyless = errors.New("this server has no key, so there is no order that people could " +
	"sign: `muster init` makes the key")

// A moment is what a server knows when it signs an order.
type moment struct {
	records *trust.Records // of the hosts
	now     time.Time

	// times is the time since which the timetable has been in force; nodes that have seen the order
	// believe no earlier one.
	times time.Time
}

// sign makes the order of a draft, signs it in the name of this server, and puts both beside the
// task. It returns the hash of the order; empty: there is no key.
func (s Signer) sign(p *draft.Draft, m moment) (string, error) {
	if s == nil {
		return "", nil
	}
	keys, err := s()
	if err != nil || keys.None() {
		return "", err
	}
	order, lines, err := orderOf(keys.Installation(), *p, m)
	if err != nil {
		return "", fmt.Errorf("the order of the task cannot be made: %w", err)
	}
	signature, err := trust.SignAs(keys, trust.NamespaceOrder, order)
	if err != nil {
		return "", err
	}
	signatures, err := codec.Signatures([]string{signature})
	if err != nil {
		return "", err
	}
	p.Task.Beside = map[string][]string{}
	for zone, shares := range lines {
		pairs := []string{codec.FieldOrder, string(order), codec.FieldSignatures, signatures}
		for i, text := range shares {
			pairs = append(pairs, codec.FieldShare+strconv.Itoa(i), text)
		}
		p.Task.Beside[zone] = pairs
	}
	return trust.HashOf(order), nil
}

// orderOf returns the order of a draft, and the lines of its hosts.
func orderOf(installation string, p draft.Draft, m moment) ([]byte, trust.Lines, error) {
	spec, err := json.Marshal(p.Task.Spec)
	if err != nil {
		return nil, nil, err
	}
	from, until := validity(p, m.now)
	return trust.New(trust.Order{Installation: installation, Task: p.Task.ID, NotBefore: from,
		NotAfter: until, Spec: spec, BreakGlass: p.Glass, Times: m.times, Kin: p.Kin()},
		p.Picked, m.records.Of(p.Task.Spec.Inventory))
}

// slowClock is the time by which the clock of a node may be behind: a task that begins at once must
// not wait for it.
const slowClock = 24 * time.Hour

// validity returns when a task may begin, as the person said, and the end of its order: the expiry
// of the last job, or as much as an order can have. Openings may move, and windows stop a job that
// would begin too early, so they do not count for the beginning. The time for signatures comes on
// top.
func validity(p draft.Draft, now time.Time) (from, until time.Time) {
	t := p.Task
	from, last := now.Add(-slowClock), t.At
	if at := t.At.Time(); t.At != 0 && at.After(now) {
		from = at
	}
	for _, at := range t.Own {
		last = max(last, at)
	}
	until = now
	if at := last.Time(); last != 0 && at.After(until) {
		until = at
	}
	until = until.Add(t.Spec.Expire)
	if p.Waits.Hold {
		until = until.Add(PartsKept)
	}
	if most := from.Add(trust.Validity); until.After(most) {
		until = most
	}
	return from.Truncate(time.Second), until.Truncate(time.Second)
}
