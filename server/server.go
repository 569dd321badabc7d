package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/history"
	"muster/internal/handover"
	"muster/internal/seal"
	"muster/internal/serverkey"
	"muster/internal/socket"
	"muster/jobs/queue/form"
	"muster/notify"
	"muster/scripts"
	"muster/server/arrivals"
	"muster/server/auditlog"
	"muster/server/calendar"
	"muster/server/depth"
	"muster/server/door"
	"muster/server/duties"
	"muster/server/entries"
	"muster/server/firing"
	"muster/server/gitops"
	"muster/server/historian"
	"muster/server/metrics"
	"muster/server/reach"
	"muster/server/rights"
	"muster/server/scribe"
	"muster/server/sessions"
	"muster/server/state"
	"muster/server/stock"
	"muster/server/tasks"
	"muster/server/tokens"
	"muster/server/web"
	"muster/triggers"
	"muster/trust"
)

// Deps has the things that a server works with.
type Deps struct {
	Queue     Stores
	Catalog   *scripts.Catalog // the runbooks
	Inventory stock.Source     // nil: none is configured
	History   *history.Store   // nil: none is kept
	Log       hclog.Logger

	// SecretKeys reads the keys of secret arguments; nil: there are none.
	SecretKeys func() (seal.Keys, error)

	// ServerKeys reads the key of servers; nil: there is none, and tokens prove nobody.
	ServerKeys func() (serverkey.Keys, error)

	// Policy reads who may do what: see rights.Needs; nil: only the user of this process and root
	// may do anything.
	Policy func() (*access.Policy, error)

	// Trust reads whose signatures count under orders; nil: the server takes none of people.
	Trust func() (*trust.Rules, error)

	// Notify reads the rules of notifications; the same pointer means that nothing has changed, and
	// nil that there is no file; a nil function: nobody is told anything.
	Notify func() (*notify.Rules, error)

	// Triggers reads which events start which tasks, as Notify reads its rules.
	Triggers func() (*triggers.Set, error)
	// Repositories has the branches that configure muster.
	Repositories gitops.Config
	// Events has the sources of events and the inbox that keeps them.
	Events arrivals.Needs

	// Audit has the audit log; without a ledger, for tests, there is none.
	Audit auditlog.Log
	// Handed has the sockets that systemd opened; nil: none.
	Handed *handover.Sockets
}

// The bounds of an HTTP exchange. Streams lift theirs and bound each write.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	headerMax     = 64 << 10        // bytes
	stopTimeout   = 5 * time.Second // for requests under way when the server stops
)

// Server answers the HTTP API.
type Server struct {
	cfg     Config
	queue   Stores
	log     hclog.Logger
	intake  requests
	catalog atomic.Pointer[scripts.Catalog]
	hostbook
	calendar *calendar.Calendar
	meters   *metrics.Meters
	streams  *tasks.Streams
	handler  http.Handler
	now      func() time.Time
	chance   func() uint16
	site     site

	chronicle
	tending
}

// hostbook knows the hosts.
type hostbook struct {
	stock *stock.Store
	look  *stock.Looker
}

// chronicle has history, the trouble with it, the agreements that it keeps, and the audit log.
type chronicle struct {
	history *history.Store // nil: none
	trouble historian.Trouble
	agreed  *state.Agreement
	audit   auditlog.Log // without a ledger: none
}

// tending has the duties that the API calls, too.
type tending struct {
	tend      *duties.Tend
	chainDuty *duties.Chains
}

// A site has the address at which a server listens, the proofs and the rights of those who call,
// its notifications, and the phases of its life.
type site struct {
	tokens   *tokens.Book
	sessions *sessions.Book
	keys     func() (serverkey.Keys, error) // of the servers
	trust    func() (*trust.Rules, error)   // nil: nobody has said whose signatures count
	rights   *rights.Keeper
	tasks    *rights.Tasks
	form     *state.Form
	telling  telling
	firer    *firing.Firer
	upkeep   upkeep
	arriving arriving
	addr     atomic.Pointer[string]
	ready    chan struct{} // closed when it listens
	stopping chan struct{} // closed when it stops: waiting requests answer now
	handed   *handover.Sockets
}

// New makes a server. Nothing is read and nobody is called before Run.
func New(cfg Config, d Deps) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.FactsStale == 0 {
		cfg.FactsStale = DefaultFactsStale
	}
	if cfg.Blobs == (Blobs{}) {
		cfg.Blobs = DefaultBlobs()
	}
	s := &Server{cfg: cfg, queue: d.Queue, log: d.Log,
		chronicle: chronicle{history: d.History, audit: d.Audit},
		meters: metrics.New(cfg.Version,
			slices.Concat(door.Reasons, []string{arrivals.Refused})...), now: time.Now,
		chance: func() uint16 { return uint16(rand.Uint32()) },
		site: site{ready: make(chan struct{}), stopping: make(chan struct{}), trust: d.Trust,
			handed: d.Handed}}
	s.site.upkeep.follower = entries.NewFollower(d.Queue.Texts, s.log)
	s.site.upkeep.runbooks = entries.NewRunbooks(s.site.upkeep.follower, s.catalog.Load)
	s.site.form = &state.Form{Forms: d.Queue.Form, Version: cfg.Version, Who: s.known}
	s.stock = stock.NewStore(stock.Needs{Source: d.Inventory, Publishing: d.Queue.Hub.Inventory,
		Counting: d.Queue.Hub.Members, Moving: d.Queue.Read.Moves, Meters: s.meters, Log: d.Log,
		Now: s.clock, Before: s.beforeInventory})
	s.look = stock.NewLooker(s.stock, d.Queue.Hub.Drains, d.Queue.Hub.Facts, d.Queue.Read.Jobs)
	s.agreed = &state.Agreement{Kept: d.Queue.Hub.Agreed, History: d.History, Log: d.Log, Now: s.clock}
	s.calendar = &calendar.Calendar{Times: d.Queue.Hub.Times.Texts, Stock: s.stock,
		Catalog: s.site.upkeep.runbooks.Catalog, Now: s.clock}
	s.streams = &tasks.Streams{Reads: readsOf(d.Queue), Zones: d.Queue.Conn,
		Until: web.Waiter{Stopping: s.site.stopping}, Now: s.clock}
	s.site.tasks = rights.NewTasks(reach.Tasks{Jobs: d.Queue.Read.Jobs,
		Find: tasks.Finder{Tasks: d.Queue.Read.Tasks, Jobs: d.Queue.Read.Jobs, History: d.History},
		Held: d.Queue.Submit.Submits, History: d.History, Stock: s.stock}, s.stock.ZoneOf)
	s.streams.Rights, s.streams.Near = s.site.tasks, reach.Hosts{Look: s.look}.Near
	s.intake = newRequests(s, d)
	s.tend, s.chainDuty, s.site.telling = newTend(s), newChains(s), newTelling(s, d)
	s.site.upkeep.depths = &depth.Book{Zones: d.Queue.Conn, Depths: d.Queue.Read.Zones, Now: s.clock}
	if d.ServerKeys == nil {
		d.ServerKeys = func() (serverkey.Keys, error) { return serverkey.Keys{}, nil }
	}
	s.site.keys = d.ServerKeys
	s.site.tokens = tokens.NewBook(d.Queue.Hub.Proofs.Tokens, d.ServerKeys, s.clock)
	s.site.sessions = sessions.NewBook(d.Queue.Hub.Proofs.Sessions, s.site.tokens, d.ServerKeys,
		s.clock)
	s.catalog.Store(d.Catalog)
	s.site.arriving = arriving{d.Events, arrivals.NewKeeper(d.Events.Sources, d.Log), d.Queue.Durable}
	var err error
	if s.site.rights, err = s.newRights(d.Policy); err != nil {
		return nil, err
	}
	if s.site.upkeep.tracer, err = newTracer(s); err != nil {
		return nil, err
	}
	s.site.upkeep.repositories = newFollower(s, d)
	s.site.firer = newFirer(s, d)
	s.site.arriving.needs.Fire = s.site.upkeep.repositories.Before(s.site.arriving.needs.Fire)
	s.handler, err = s.routes()
	return s, err
}

func (s *Server) newRights(policy func() (*access.Policy, error)) (*rights.Keeper, error) {
	if policy == nil {
		own := access.Default(socket.Own(door.PlainName))
		policy = func() (*access.Policy, error) { return own, nil }
	}
	return rights.NewKeeper(rights.Needs{Policy: policy, Inventory: s.stock.Hosts, Log: s.log,
		Changed: func() { s.audit.Scribe.Note(scribe.Own{Verb: "access.change"}) }})
}

// UseCatalog replaces the runbooks. Tasks keep the runbook they were made of.
func (s *Server) UseCatalog(c *scripts.Catalog) {
	s.audit.Scribe.Note(scribe.Own{Verb: "runbooks.reload"})
	s.catalog.Store(c)
}

// beforeInventory writes that this server will publish another inventory.
func (s *Server) beforeInventory(ctx context.Context, version string, hosts int) error {
	// A server without an inventory does not start, and orders that stop work need a server.
	start := s.stock.Now() == nil
	return s.audit.Scribe.Before(ctx, scribe.Own{Verb: "inventory.publish",
		Object: "inventory/" + version, Hosts: hosts}, start)
}

// Stock returns the hosts that the server works with, for who reloads or replaces them.
func (s *Server) Stock() *stock.Store { return s.stock }

// Ready is closed when the server listens.
func (s *Server) Ready() <-chan struct{} { return s.site.ready }

// Addr returns the addresses of the server, between commas: host:port or unix:/path. It is empty
// before Ready.
func (s *Server) Addr() string {
	if a := s.site.addr.Load(); a != nil {
		return *a
	}
	return ""
}

// Run publishes the inventory and serves until ctx is done, then waits for the
// requests and duties in hand, at most 5 s, and before that for callers who go over to the next
// server, at most 3 s. It returns nil on an orderly stop.
// It can be called once.
func (s *Server) Run(ctx context.Context) error {
	list, err := s.cfg.listen(ctx, s.site.handed)
	if err != nil {
		return err
	}
	var newer *form.Error
	if err := s.site.form.RunOnce(ctx); errors.As(err, &newer) {
		return errors.Join(err, closeAll(list))
	}
	if err := s.stock.Reload(ctx); err != nil {
		if ctx.Err() != nil { // told to stop before it has begun
			return closeAll(list)
		}
		return errors.Join(err, closeAll(list))
	}
	// Nodes wait for this word of a server. The duty repeats it, and tells people of errors.
	times := newTimes(s)
	_ = times.RunOnce(ctx)
	s.announce(ctx, list)

	var working sync.WaitGroup
	defer working.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	working.Go(func() { s.duties(ctx, times) })
	working.Go(func() { s.stock.Follow(ctx) })

	return errors.Join(s.serve(ctx, list), s.lastEntries())
}

// lastEntries waits until the audit log has the outcomes of the last requests.
func (s *Server) lastEntries() error {
	if s.audit.Scribe == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if s.audit.Scribe.Idle(ctx) != nil {
		s.log.Error("the audit log lacks the outcomes of the last requests")
	}
	return nil
}

// announce tells where the server listens.
func (s *Server) announce(ctx context.Context, list []net.Listener) {
	place := placeNames(list)
	s.site.addr.Store(&place)
	close(s.site.ready)
	s.log.Info("server listens", "on", place, "tls", s.cfg.tls(), "version", s.cfg.Version)
	if strings.Contains(place, unixPrefix) {
		return
	}
	if any, err := s.site.tokens.Any(ctx); err == nil && !any {
		s.log.Warn("there is no token yet, so nobody can call: make the first one on a unix socket; " +
			"server.listen takes it beside the port: unix:/run/muster-server/api.sock," + place)
	}
}

func (s *Server) serve(ctx context.Context, list []net.Listener) error {
	used := web.NewUses()
	h := &http.Server{ConnContext: door.WithPeer, ConnState: used.Note,
		Handler: web.Leaving(s.site.stopping, s.handler), ReadHeaderTimeout: headerTimeout,
		ReadTimeout: web.AnswerTimeout, WriteTimeout: web.AnswerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerMax,
		ErrorLog:       s.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug})}
	ended := make(chan error, len(list))
	for _, l := range list {
		go func() { ended <- h.Serve(l) }()
	}
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("serve: %w", err), h.Close())
	case <-ctx.Done():
	}
	close(s.site.stopping)
	left := s.leave(list, ended, used)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if h.Shutdown(last) != nil {
		s.log.Warn("requests were cut off when the server stopped", "after", stopTimeout)
		h.Close()
	}
	for range len(list) - left {
		<-ended
	}
	return nil
}
