package bundle

import (
	"context"
	"errors"

	"muster/jobs/queue"
	"muster/jobs/queue/vitals"
)

// redis returns what each server of Redis says of itself. A server that was not reached makes the
// part incomplete, which it says.
func (p site) redis(ctx context.Context) (any, error) {
	if p.set.Redis.URL == "" {
		return nil, errors.New("no configuration could be read, so it is not known which Redis it is")
	}
	q, err := queue.OpenLazy(p.set.Queue())
	if err != nil {
		return nil, err
	}
	defer q.Close()
	list, err := vitals.Whole(ctx, q)
	if len(list) == 0 && err != nil {
		return nil, err
	}
	out := struct {
		Servers []vitals.Told `json:"servers"`
		Missing string        `json:"missing,omitempty"`
	}{Servers: list}
	if err != nil {
		out.Missing = err.Error()
	}
	return out, nil
}
