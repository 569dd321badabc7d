package care

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/form"
	"muster/jobs/queue/keys"
)

// serverKeep is the time for which a server that was not signed off stays in the list.
const serverKeep = 24 * time.Hour

// ReportServer notes that a server runs, with its version. It forgets servers that were silent for
// a day.
func (f Forms) ReportServer(ctx context.Context, server, version string) error {
	text, err := json.Marshal(form.Server{Version: version, Seen: time.Now()})
	if err != nil {
		return err
	}
	key := keys.Hub("servers", "")
	if err := f.c.Redis().HSet(ctx, key, server, text).Err(); err != nil {
		return f.c.Say("servers", err)
	}
	list, err := f.Servers(ctx)
	var old []string
	for _, s := range list {
		if time.Since(s.Seen) > serverKeep {
			old = append(old, s.Name)
		}
	}
	if err != nil || len(old) == 0 {
		return err
	}
	return f.c.Say("servers", f.c.Redis().HDel(ctx, key, old...).Err())
}

// SignOff removes a server that ends from the list.
func (f Forms) SignOff(ctx context.Context, server string) error {
	return f.c.Say("servers", f.c.Redis().HDel(ctx, keys.Hub("servers", ""), server).Err())
}

// Servers lists the servers that have reported, by name. A record that cannot be read keeps its
// name, without a version.
func (f Forms) Servers(ctx context.Context) ([]form.Server, error) {
	all, err := f.c.Redis().HGetAll(ctx, keys.Hub("servers", "")).Result()
	if err != nil {
		return nil, f.c.Say("servers", err)
	}
	list := make([]form.Server, 0, len(all))
	for name, text := range all {
		var s form.Server
		if json.Unmarshal([]byte(text), &s) != nil {
			s = form.Server{}
		}
		s.Name = name
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b form.Server) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// InUse returns the form of the data in the hub and in each zone.
func (f Forms) InUse(ctx context.Context) (list []form.Place, err error) {
	zones, err := f.c.Zones(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(zones)
	for _, p := range append([]place{hubPlace}, placesOf(zones)...) {
		v, err := f.c.Redis().HMGet(ctx, p.key, form.Field, form.FieldBy).Result()
		if queue.Away(err) {
			continue
		}
		if err != nil {
			return nil, f.c.Say("form", err)
		}
		list = append(list, form.Place{Where: p.name, Has: codec.TextOf(v, 0), By: codec.TextOf(v, 1)})
	}
	return list, nil
}
