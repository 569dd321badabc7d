package state

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hooks"
	"muster/server/metrics"
	"muster/server/web"
)

// scrapeTimeout bounds what a scrape waits for Redis.
const scrapeTimeout = 3 * time.Second

// Scraper answers Prometheus.
type Scraper struct {
	Health  Health
	Groups  Groups
	Calls   func() []hooks.Call
	Streams Streams
	Meters  *metrics.Meters
	Notify  func(ctx context.Context) *metrics.Notify
	// Branches returns the numbers of repositories.
	Branches func(ctx context.Context) []metrics.Repository
}

// Groups reads redundancy groups.
type Groups interface {
	Groups(ctx context.Context) ([]jobs.Group, error)
}

// Routes registers the routes of the resource.
func (s Scraper) Routes(api huma.API) {
	huma.Register(api, web.Raw(web.Get("/metrics", "Metrics for Prometheus"),
		"text/plain"),
		func(context.Context, *web.Nothing) (*huma.StreamResponse, error) {
			return &huma.StreamResponse{Body: func(ctx huma.Context) {
				r, w := humago.Unwrap(ctx)
				s.serveMetrics(w, r)
			}}, nil
		})
}

// serveMetrics answers a scrape with the own counters and the present state of Redis.
func (s Scraper) serveMetrics(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTimeout)
	defer cancel()
	now := metrics.State{Hosts: -1, Looks: metrics.Looks{Groups: -1, Hosts: -1},
		Calls: s.Calls(), Refused: s.Health.Stock.Refused(),
		Streams: s.Streams.Open()}
	if stock, err := s.Health.Stock.Get(); err == nil {
		now.Hosts = stock.Len()
	}
	if s.Health.History != nil {
		now.History = s.historyNow(ctx)
	}
	var err error
	// The numbers that could be read are shown; health says why the others could not.
	now.Audit, _ = s.Health.Audit.Gauges(ctx)
	now.Notify, now.Repositories = s.Notify(ctx), s.Branches(ctx)
	now.Times = s.Health.Calendar.Doubt(ctx) != nil
	var list []jobs.Node
	if list, err = s.Health.Queue.Nodes.Nodes(ctx); err == nil {
		now.Nodes = append([]jobs.Node{}, list...)
		now.Zones, err = s.zones(ctx)
	}
	now.Up = err == nil
	wrong, full := s.Health.look(ctx, true)
	now.Writes = now.Up && full == nil
	now.Wrong = map[metrics.Part]bool{}
	for _, f := range wrong {
		now.Wrong[f.part] = true
	}
	if groups, err := s.Groups.Groups(ctx); err == nil {
		now.Looks.Groups = 0
		for _, g := range groups {
			if g.Frozen != "" {
				now.Looks.Groups++
			}
		}
	}
	if aside, err := s.Health.Aside(ctx); err == nil {
		now.Looks.Hosts = len(aside)
	}
	s.Meters.Serve(w, r, now)
}

func (s Scraper) historyNow(ctx context.Context) *metrics.History {
	h := &metrics.History{Trouble: s.Health.Trouble.Words() != ""}
	a, err := Away(ctx, s.Health.Queue, s.Health.History)
	if h.Known, h.Away = err == nil, a != nil; a != nil {
		h.Backlog = map[string]float64{}
		for _, u := range a.Streams {
			h.Backlog[u.Zone] = u.Share
		}
	}
	return h
}

// zones reads all zones, at the cost of a few calls each. A zone in which somebody else has written
// does not hide the others.
func (s Scraper) zones(ctx context.Context) ([]metrics.Zone, error) {
	q := s.Health.Queue
	zones, err := q.Conn.Zones(ctx)
	if err != nil {
		return nil, err
	}
	working, staffErr := q.Nodes.Staff(ctx) // fails if one zone is spoiled
	owed := map[string]bool{}
	debts, _ := q.Debts.Debts(ctx, zones) // of those that can be read
	for _, d := range debts {
		owed[d.Zone] = d.Owed != ""
	}
	var out []metrics.Zone
	for _, zone := range zones {
		d, depthErr := q.Zones.Depth(ctx, zone)
		ends, endsErr := q.Zones.Ends(ctx, zone)
		err := errors.Join(depthErr, endsErr)
		if queue.Away(err) {
			continue
		}
		spoiled := queue.Spoiled(err)
		if err != nil && !spoiled {
			return out, err
		}
		one := metrics.Zone{Name: zone, Spoiled: spoiled, Queued: d.Queued, Again: d.Again,
			Due: d.Due, Overdue: d.Overdue, EndedJobs: ends.Jobs, EndedTasks: ends.Tasks,
			Stops: map[metrics.Stop]bool{metrics.StopFreeze: !d.Frozen.IsZero(),
				metrics.StopHistory: owed[zone], metrics.StopPause: d.Paused != "",
				metrics.StopHalt: d.Halted != ""}}
		one.Shut = !d.Frozen.IsZero() || d.Halted != "" || d.Paused != ""
		if z := working[zone]; staffErr != nil {
			one.Working = -1
		} else if z != nil {
			one.Working, one.Unserved = z.Working, z.Alarming(s.Health.Stock.HasZone(zone))
		}
		out = append(out, one)
	}
	return out, nil
}
