package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/hashicorp/go-hclog"

	"muster/jobs"
	"muster/server/apply"
	"muster/server/approvals"
	"muster/server/auditlog"
	"muster/server/books"
	"muster/server/calendar"
	"muster/server/chains"
	"muster/server/depth"
	"muster/server/door"
	"muster/server/foresight"
	"muster/server/gitops"
	"muster/server/idp"
	"muster/server/lanes"
	"muster/server/nodes"
	"muster/server/orders"
	"muster/server/pages"
	"muster/server/pages/frame"
	"muster/server/recent"
	"muster/server/reviews"
	"muster/server/rights"
	"muster/server/scribe"
	"muster/server/sessions"
	"muster/server/state"
	"muster/server/tasks"
	"muster/server/tokens"
	"muster/server/web"
)

// routes builds the handler of everything the server answers.
func (s *Server) routes() (http.Handler, error) {
	mux := http.NewServeMux()
	c := huma.DefaultConfig("muster", s.cfg.Version)
	c.Info.Description = "Runs jobs on a fleet of hosts. Errors are RFC 9457 problems."
	// The library's pages load scripts from elsewhere, and its links to schemas
	// would be in every answer.
	c.DocsPath, c.SchemasPath, c.OpenAPIPath, c.CreateHooks = "", "", "", nil
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{web.Shorten}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer",
			Description: "needed over TCP; over a unix socket the kernel says who calls"}}
	c.Security = []map[string][]string{{"token": {}}, {}}
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[jobs.Time](), reflect.TypeFor[instant]())
	api := humago.New(mux, c)
	hook := scribe.Hook{Scribe: s.audit.Scribe}
	api.UseMiddleware(s.gate(hook).Middleware, web.Probing, s.site.form.Middleware,
		hook.Middleware, recent.New(time.Now).Middleware)
	s.register(api)

	mux.HandleFunc("GET /openapi.json", s.document(api))
	refusals := door.NewRefusals(s.log, s.meters, s.audit.Scribe)
	login := sessions.Pages{Book: s.site.sessions, Audit: s.audit.Scribe, Log: s.log,
		MayAnything: s.site.rights.Anything, Refused: refusals.Refused}
	if !s.cfg.NoPages {
		login.Home = "/"
	}
	var err error
	if s.cfg.OIDC.On() {
		login.Provider, err = idp.New(s.cfg.OIDC, strings.TrimRight(s.cfg.URL, "/"), s.clock)
	}
	login.Routes(mux)
	return s.around(mux, refusals), err
}

// document answers with the description of the API. It is made for the first caller: to write it
// takes longer than all the rest of the routes, and most servers are never asked.
func (s *Server) document(api huma.API) http.HandlerFunc {
	written := sync.OnceValues(func() ([]byte, error) { return json.Marshal(api.OpenAPI()) })
	return func(w http.ResponseWriter, _ *http.Request) {
		text, err := written()
		if err != nil {
			s.log.Error("OpenAPI document", "error", err)
			http.Error(w, "the description of the API cannot be written: the log of the server says why",
				http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		// A client that does not read it has gone.
		_, _ = w.Write(text)
	}
}

// gate returns the middleware that holds requests against the policy.
func (s *Server) gate(hook scribe.Hook) rights.Gate {
	return rights.Gate{Keeper: s.site.rights, Tasks: s.site.tasks,
		Customer: rights.Customers(s.stock.Hosts), Unknown: s.look.Unknown, Refused: hook.Refused}
}

// instant describes jobs.Time in the document.
type instant struct{}

// Schema is that of an instant which may be missing.
func (instant) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true,
		Description: "RFC 3339 in UTC with milliseconds; null: not set"}
}

// register names every route, each with the rest of its resource.
func (s *Server) register(api huma.API) {
	why, whole, find := newWaits(s), s.agreed.Whole, tasks.Finder{Tasks: s.queue.Read.Tasks,
		Jobs: s.queue.Read.Jobs, History: s.history}
	o := s.queue.Orders
	reads, until := readsOf(s.queue), web.Waiter{Stopping: s.site.stopping}
	linked := chains.Resource{Duty: s.chainDuty, Kept: s.queue.Hub.Chains,
		Care: s.queue.Hub.ChainDuty, Tasks: s.queue.Read.Tasks, Until: until, Log: s.log,
		Sees: s.site.tasks.Sees}
	submits := submitRoutes{s.intake, find, linked, s.meters, s.log}
	hosts := books.HostRoutes{Stock: s.stock, Look: s.look, Waits: s.queue.Read.Waits,
		SeenJobs: s.site.tasks.SeenJobs}
	pauses := state.PauseRoutes{Queue: stateOf(s.queue), Stock: s.stock, Agreed: s.agreed,
		PauseRights: state.PauseRights{Sees: s.site.tasks.Sees, Seen: s.site.tasks.Seen,
			Near: s.streams.Near}}
	zones := state.NodeRoutes{Queue: stateOf(s.queue), Stock: s.stock, Why: why, Log: s.log}
	groups := tasks.Groups{Said: s.queue.Read.Outputs, Stock: s.stock}
	s.calendar.Owned = apply.Owners{Store: s.queue.Kept}.Owned
	repeated, applied := newApplies(s, submits, whole)
	for _, one := range []interface{ Routes(huma.API) }{
		submits,
		tasks.TaskRoutes{Reads: reads, Find: find, Until: until, Why: why, Stock: s.stock,
			Seen: s.site.tasks.Seen},
		tasks.FollowRoutes{Reads: reads, Streams: s.streams, Find: find, Groups: groups, Why: why},
		tasks.JobRoutes{Reads: reads, Find: find, Until: until, Why: why, Stock: s.stock,
			Asks: s.queue.Orders.Asks, Log: s.log, Seen: s.site.tasks.Seen, Traces: tracesOf(s.cfg.Traces)},
		linked,
		orders.SwitchRoutes{Switches: o.Switches, Halts: o.Halts, Exclusion: o.Exclusion,
			Zones: s.queue.Conn, Stock: s.stock, Log: s.log, Whole: whole, Gone: find.Gone,
			Stands: pauses.All},
		orders.CancelRoutes{Cancels: s.queue.Submit.Cancels, Log: s.log, Gone: find.Gone},
		s.approvals(),
		s.reviews(),
		pauses,
		lanes.Routes{Lanes: newLanes(s), Seen: s.site.tasks.Seen},
		orders.RolloutRoutes{Rollouts: o.Rollouts, Tasks: s.queue.Read.Tasks, Log: s.log,
			Seen: s.site.tasks.Seen},
		orders.GateRoutes{Gates: o.Gates, Keys: s.site.keys, Tasks: s.queue.Read.Tasks,
			Jobs: s.queue.Read.Jobs, Log: s.log, HostsOn: hosts.HostsOn,
			SeenJobs: s.site.tasks.SeenJobs},
		orders.GroupRoutes{Exclusion: o.Exclusion, Groups: s.queue.Read.Groups, Stock: s.stock,
			Log: s.log},
		orders.HostRoutes{Drains: s.queue.Hub.Drains, Exclusion: o.Exclusion,
			Waits: s.queue.Read.Waits, Look: s.look, Log: s.log, Whole: whole},
		hosts,
		books.FactRoutes{Kept: s.queue.Hub.Facts, Tasks: s.queue.Read.Tasks, Duty: s.tend.Facts,
			HostsOn: hosts.HostsOn, Now: s.clock, Stale: s.cfg.FactsStale},
		books.ClearRoutes{Kept: s.queue.Hub.Facts, Look: s.look, Waits: s.queue.Read.Waits,
			Log: s.log, Now: s.clock},
		books.BlobRoutes{Store: s.queue.Blobs.Store, Care: s.queue.Blobs.Care, Max: s.cfg.Blobs.Max,
			Log: s.log},
		calendar.Windows{Calendar: s.calendar, Stock: s.stock, Log: s.log, Now: s.clock, Whole: whole},
		calendar.Approvals{Calendar: s.calendar, Stock: s.stock, Log: s.log, Now: s.clock, Whole: whole},
		repeated,
		applied,
		s.agreed,
		tasks.HistoryRoutes{Reads: reads, Find: find, Stock: s.stock, Log: s.log,
			Rights: s.site.tasks},
		foresight.Routes{Forecaster: s.intake.forecast},
		planRoutes{s.intake, s.history, s.log, s.clock, func() uint16 { return s.chance() }},
		zones,
		depth.Routes{Book: s.site.upkeep.depths, Sees: zones.Sees},
		state.UpgradeRoutes{Forms: s.queue.Form, History: s.history, Version: s.cfg.Version},
		nodes.Routes{Queue: s.queue.Hub.Nodes, Keys: s.site.keys, Log: s.log},
		books.RunbookRoutes{Catalog: s.site.upkeep.runbooks.Catalog},
		orders.FsckRoutes{Examine: s.queue.Care.Fsck, Zones: s.queue.Conn, Log: s.log},
	} {
		one.Routes(api)
	}
	s.registerSelf(api)
}

// registerSelf names the routes about callers and about the server itself.
func (s *Server) registerSelf(api huma.API) {
	for _, one := range []interface{ Routes(huma.API) }{
		sessions.Routes{Book: s.site.sessions, Base: s.browserURL, Audit: s.audit.Scribe,
			Log: s.log},
		tokens.Routes{Book: s.site.tokens, Audit: s.audit.Scribe, Log: s.log},
		auditlog.Routes{Watch: s.watch(), Logger: s.log},
		s.notices(),
		firingRoutes(s),
		gitops.Routes{Follower: s.site.upkeep.repositories},
		newDNSSEC(s),
		arrivalsOf(s),
		whoRoutes{},
		s.health(),
		state.Scraper{Health: s.health(), Groups: s.queue.Read.Groups, Calls: s.queue.Conn.Calls,
			Streams: s.streams, Meters: s.meters, Notify: s.toldGauges,
			Branches: s.site.upkeep.repositories.Gauges},
	} {
		one.Routes(api)
	}
}

// approvals returns the resource of tasks that wait for signatures.
func (s *Server) approvals() approvals.Routes {
	q := s.queue.Submit
	return approvals.Routes{Last: approvals.NewLasts(s.history, s.queue.Read.Tasks.Spec),
		Holds: q.Submits, Orders: q.Signed, Tasks: s.queue.Read.Tasks,
		Cancels: q.Cancels, Stock: s.stock, Trust: s.site.trust, Seen: s.site.tasks.Seen,
		MayBegin: s.mayBegin, Audit: s.audit.Scribe, Entries: s.audit.Ledger, Log: s.log, Now: s.clock,
		Glass: approvals.Glass{Alerts: s.queue.Conn, Count: s.meters.GlassBroken}}
}

// reviews returns the resource of broken glass that somebody else must look at.
func (s *Server) reviews() reviews.Routes {
	return reviews.Routes{Entries: s.audit.Ledger, Audit: s.audit.Scribe, Trust: s.site.trust,
		Log: s.log}
}

// browserURL returns what begins the URLs of this server for browsers.
func (s *Server) browserURL() (string, error) {
	return sessions.Site{URL: s.cfg.URL, TLS: s.cfg.tls(), Wanted: s.cfg.Listen,
		Listening: s.Addr()}.Base()
}

// readsOf returns the handles that show tasks and jobs.
func readsOf(q Stores) tasks.Reads {
	return tasks.Reads{Tasks: q.Read.Tasks, Jobs: q.Read.Jobs, Outputs: q.Read.Outputs,
		Events: q.Read.Zones}
}

// stateOf returns the handles by which a server says how the house is.
func stateOf(q Stores) state.Queue {
	return state.Queue{Conn: q.Conn, Nodes: q.Hub.Nodes, Duties: q.Hub.Duties, Zones: q.Read.Zones,
		Tasks: q.Read.Tasks, Jobs: q.Read.Jobs, Halts: q.Orders.Halts, Zoning: q.Hub.Times.Zones,
		Debts: q.Care.Debts, Outages: q.Care.Outages, Backlogs: q.Care.Backlogs}
}

// health returns the resource that says whether the server can work.
func (s *Server) health() state.Health {
	return state.Health{Queue: stateOf(s.queue), Stock: s.stock, History: s.history,
		Trouble: &s.trouble, Agreed: s.agreed, Calendar: s.calendar,
		Form: s.site.form.Words, Policy: s.site.rights.Complaint, Audit: s.watch(),
		Reviews: s.reviews().Words, Untold: s.untold, Aside: s.queue.Hub.Drains.Quarantined,
		Repositories: s.site.upkeep.repositories.Words, Who: s.who, Version: s.cfg.Version}
}

// watch says how the audit log is.
func (s *Server) watch() auditlog.Watch { return auditlog.Watch{Log: s.audit, Now: s.clock} }

// around returns the handler of every request. It counts and guards the request, and answers one
// without a route.
func (s *Server) around(mux *http.ServeMux, out *door.Refusals) http.Handler {
	guard := door.Guard{Tokens: s.site.tokens, Sessions: s.site.sessions, Door: out,
		Claims: s.cfg.Claims}
	events := eventDoor(s, out.Refused)
	shown := pages.New(frame.Needs{API: mux, Identify: guard.Identify, Stopping: s.site.stopping})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &web.Exchange{ResponseWriter: w}
		begun := time.Now()
		defer func() {
			v := recover()
			if v != nil {
				failed(s.log, x, r, v)
			}
			waits := x.Header().Get("Content-Type") == web.EventStream || r.URL.Query().Has("wait")
			s.meters.Answered(r.Pattern, x.Status, time.Since(begun), waits)
			if v != nil && x.Status != http.StatusInternalServerError {
				panic(http.ErrAbortHandler) // the client must not take a part for the whole
			}
		}()
		if events.Has(r) {
			events.ServeHTTP(x, r)
			return
		}
		if !s.cfg.NoPages && shown.Has(r) {
			shown.Through(x, r, guard.Let)
			return
		}
		guard.Let(x, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, pattern := mux.Handler(r); pattern == "" {
				web.NoRoute(mux, w, r)
				return
			}
			mux.ServeHTTP(w, r)
		}))
	})
}

// failed answers for a handler that panicked. The API library panics if it cannot write an answer,
// which the log need not have if the client is gone.
func failed(log hclog.Logger, x *web.Exchange, r *http.Request, v any) {
	err, isError := v.(error)
	var network net.Error
	if isError && (r.Context().Err() != nil || errors.As(err, &network) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		return
	}
	log.Error("request failed", "method", r.Method, "route", r.Pattern, "panic", fmt.Sprint(v),
		"stack", string(debug.Stack()))
	if x.Status == 0 {
		web.WriteProblem(x, huma.Error500InternalServerError("a mistake in muster: its log says more"))
	}
}
