package intake

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/server/draft"
	"muster/trust"
)

// A Signer reads the key of servers, with which orders are signed; nil: they are not.
type Signer func() (serverkey.Keys, error)

// sign makes the order of a draft, signs it in the name of this server, and puts both beside the
// task. It returns the hash of the order; empty: there is no key.
func (s Signer) sign(p *draft.Draft, now time.Time) (string, error) {
	if s == nil {
		return "", nil
	}
	keys, err := s()
	if err != nil || keys.None() {
		return "", err
	}
	order, lines, err := orderOf(keys.Installation(), *p, now)
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
func orderOf(installation string, p draft.Draft, now time.Time) ([]byte, trust.Lines, error) {
	spec, err := json.Marshal(p.Task.Spec)
	if err != nil {
		return nil, nil, err
	}
	from, until := begins(p.Task, now)
	return trust.New(trust.Order{Installation: installation, Task: p.Task.ID, NotBefore: from,
		NotAfter: until, Spec: spec}, p.Picked)
}

// begins returns when the first job of a task may begin, and the end of its order: the expiry of
// the last job, or as much as an order can have.
func begins(t jobs.Task, now time.Time) (from, until time.Time) {
	first, last := t.At, t.At
	for _, at := range t.Own {
		if at != 0 && (first == 0 || at < first) {
			first = at
		}
		last = max(last, at)
	}
	from = jobs.TimeOf(first).Time
	if first == 0 || from.Before(now) {
		from = now
	}
	until = from
	if at := jobs.TimeOf(last).Time; last != 0 && at.After(until) {
		until = at
	}
	until = until.Add(t.Spec.Expire)
	if most := from.Add(trust.Validity); until.After(most) {
		until = most
	}
	return from.Truncate(time.Second), until.Truncate(time.Second)
}
