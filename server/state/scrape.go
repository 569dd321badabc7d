package state

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/history"
	"muster/jobs/queue"
	"muster/server/calendar"
	"muster/server/historian"
	"muster/server/metrics"
	"muster/server/stock"
	"muster/server/web"
)

// scrapeTimeout bounds what a scrape waits for Redis.
const scrapeTimeout = 3 * time.Second

// Scraper answers Prometheus.
type Scraper struct {
	Queue   Queue
	Stock   *stock.Store
	History *history.Store // nil: none
	Trouble *historian.Trouble
	Streams Streams
	Meters  *metrics.Meters
	Times   *calendar.Calendar
	Audit   interface {
		Gauges(ctx context.Context) (*metrics.Audit, error)
	}
	Notify func(ctx context.Context) *metrics.Notify
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
	now := metrics.State{Hosts: -1, Refused: s.Stock.Refused(), Streams: s.Streams.Open()}
	if stock, err := s.Stock.Get(); err == nil {
		now.Hosts = stock.Len()
	}
	if s.History != nil {
		now.History = s.historyNow(ctx)
	}
	var err error
	// The numbers that could be read are shown; health says why the others could not.
	now.Audit, _ = s.Audit.Gauges(ctx)
	now.Notify = s.Notify(ctx)
	now.Times = s.Times.Doubt(ctx) != nil
	if now.Nodes, err = s.Queue.Nodes.Nodes(ctx); err == nil {
		now.NodesRead = true
		now.Zones, err = zoneStates(ctx, s.Queue)
	}
	now.Up = err == nil
	now.Writes = now.Up && s.Queue.Conn.Writes(ctx) == nil
	s.Meters.Serve(w, r, now)
}

func (s Scraper) historyNow(ctx context.Context) *metrics.History {
	h := &metrics.History{Trouble: s.Trouble.Words() != ""}
	a, err := Away(ctx, s.Queue, s.History)
	if h.Known, h.Away = err == nil, a != nil; a != nil {
		h.Backlog = map[string]float64{}
		for _, u := range a.Streams {
			h.Backlog[u.Zone] = u.Share
		}
	}
	return h
}

// zoneStates reads all zones, at the cost of a few calls each. A zone in which somebody else has
// written does not hide the others.
func zoneStates(ctx context.Context, q Queue) ([]metrics.Zone, error) {
	zones, err := q.Conn.Zones(ctx)
	if err != nil {
		return nil, err
	}
	var out []metrics.Zone
	for _, zone := range zones {
		d, depthErr := q.Zones.Depth(ctx, zone)
		ends, endsErr := q.Zones.Ends(ctx, zone)
		err := errors.Join(depthErr, endsErr)
		spoiled := queue.Spoiled(err)
		if err != nil && !spoiled {
			return out, err
		}
		out = append(out, metrics.Zone{Name: zone, Spoiled: spoiled, Queued: d.Queued, Again: d.Again,
			Due: d.Due, Overdue: d.Overdue, Shut: !d.Frozen.IsZero() || d.Halted != "" || d.Paused != "",
			EndedJobs: ends.Jobs, EndedTasks: ends.Tasks})
	}
	return out, nil
}
