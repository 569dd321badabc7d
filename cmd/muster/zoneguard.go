package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/jobs/queue"
)

// zoneGuard refuses a reload that gives a node zones for which it has no user of Redis: every call
// there would fail, while the other zones work as if all were well.
type zoneGuard struct {
	queue interface {
		Permits(ctx context.Context, zones []string) error
	}
	timeout time.Duration
	known   []string // zones for which the user is known to suffice
}

// check asks Redis about the new zones.
func (z *zoneGuard) check(next []string) error {
	fresh := slices.DeleteFunc(slices.Clone(next), func(zone string) bool {
		return slices.Contains(z.known, zone)
	})
	if len(fresh) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), z.timeout)
	defer cancel()
	names := strings.Join(fresh, ", ")
	err := z.queue.Permits(ctx, fresh)
	switch {
	case err == nil:
		z.known = append(z.known, fresh...)
		return nil
	case errors.Is(err, queue.ErrPermission):
		return fmt.Errorf("master.zones: the user that this node has at Redis may not work for %s "+
			"(a node of several zones needs one user for all: `muster acl --user muster-node-NAME%s` "+
			"prints it): %w", names, zoneFlags(next), err)
	}
	return fmt.Errorf("master.zones: whether this node may work for %s is not known, because Redis "+
		"could not be asked; send HUP again when it can: %w", names, err)
}

// zoneFlags returns the flags that name some zones.
func zoneFlags(zones []string) string {
	text := ""
	for _, zone := range zones {
		text += " --zone " + zone
	}
	return text
}
