package scribe

import (
	"context"

	"muster/audit"
)

// ByHand writes the entry of an order that a person carries out without a server. The function that
// it returns writes the outcome and ends the scribe.
func (s *Scribe) ByHand(ctx context.Context, d audit.Draft) (end func(result error) error,
	err error) {
	d.Entry.Proof = "local"
	id, err := s.Write(ctx, d, false)
	if err != nil {
		return nil, err
	}
	return func(result error) error {
		d.Entry.Kind, d.Entry.End = audit.KindOutcome, &audit.End{Of: id, Result: audit.Done}
		if result != nil {
			d.Entry.End.Result = audit.Failed
		}
		s.Keep(d)
		return s.Close(ctx)
	}, nil
}
