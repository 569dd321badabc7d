package duties

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/serverkey"
	"muster/jobs/queue/submit"
	"muster/trust"
)

const (
	// OrdersDuty is the name of the duty of Renewal.
	OrdersDuty = "orders"
	// RenewEvery is the time between two of its rounds.
	RenewEvery = time.Hour
)

// SignedOrders keeps the signed orders of open tasks.
type SignedOrders interface {
	EachOrder(ctx context.Context, zone string, do func(submit.Order) (*submit.Order, error)) error
}

// Renewal renews the signed orders of tasks that are open for longer than an order may be good.
type Renewal struct {
	Zones interface {
		Zones(ctx context.Context) ([]string, error)
	}
	Orders SignedOrders
	Keys   func() (serverkey.Keys, error) // of the servers
	Log    hclog.Logger
	Now    func() time.Time
}

// RunOnce renews the orders whose end is near.
func (d *Renewal) RunOnce(ctx context.Context) error {
	k, err := d.Keys()
	if err != nil || k.None() {
		return err
	}
	zones, err := d.Zones.Zones(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, zone := range zones {
		errs = append(errs, d.Orders.EachOrder(ctx, zone, func(o submit.Order) (*submit.Order, error) {
			renewed, signature, err := trust.Renew(o.Bytes, o.Signatures, k, d.Now())
			if err != nil {
				d.Log.Warn("an order is not renewed", "task", o.Task, "zone", zone, "why", err)
				return nil, nil
			}
			if renewed == nil {
				return nil, nil
			}
			return &submit.Order{Task: o.Task, Bytes: renewed, Signatures: []string{signature}}, nil
		}))
	}
	return errors.Join(errs...)
}
