package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/jobs"
)

// Bounds of a request's body.
const (
	submitMax = 8 << 20  // bytes: all files of a task, and a selector that lists its hosts
	smallMax  = 64 << 10 // bytes of any other body
)

const eventStream = "text/event-stream"

// routes builds the handler of everything the server answers.
func (s *Server) routes() (http.Handler, error) {
	mux := http.NewServeMux()
	c := huma.DefaultConfig("muster", s.cfg.Version)
	c.Info.Description = "Runs jobs on a fleet of hosts. Errors are RFC 9457 problems."
	// The library's pages load scripts from elsewhere, and its links to schemas
	// would be in every answer.
	c.DocsPath, c.SchemasPath, c.OpenAPIPath, c.CreateHooks = "", "", "", nil
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{shorten}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer",
			Description: "needed over TCP; over a unix socket the kernel says who calls"}}
	c.Security = []map[string][]string{{"token": {}}, {}}
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[jobs.Time](), reflect.TypeFor[instant]())
	api := humago.New(mux, c)
	s.register(api)

	document, err := json.Marshal(api.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		// A client that does not read it has gone.
		_, _ = w.Write(document)
	})
	return s.around(mux), nil
}

// instant describes jobs.Time in the document.
type instant struct{}

// Schema is that of an instant which may be missing.
func (instant) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true,
		Description: "RFC 3339 in UTC with milliseconds; null: not set"}
}

// register names every route.
func (s *Server) register(api huma.API) {
	get := func(path, what string) huma.Operation { return operation(http.MethodGet, path, what) }
	post := func(path, what string) huma.Operation { return operation(http.MethodPost, path, what) }
	del := func(path, what string) huma.Operation { return operation(http.MethodDelete, path, what) }

	submit := post("/v1/tasks", "Submit a task")
	submit.MaxBodyBytes, submit.DefaultStatus = submitMax, http.StatusCreated
	huma.Register(api, submit, s.submit)
	huma.Register(api, get("/v1/tasks", "List the newest tasks"), s.tasks)
	huma.Register(api, get("/v1/tasks/{task}", "Show a task, or wait for it to change"), s.task)
	huma.Register(api, get("/v1/tasks/{task}/jobs", "List the jobs of a task"), s.jobs)
	huma.Register(api, get("/v1/tasks/{task}/summary", "Fold jobs that ended alike"), s.summary)
	huma.Register(api, get("/v1/tasks/{task}/waits", "Tell what jobs wait for"), s.waits)
	huma.Register(api, raw(get("/v1/tasks/{task}/summaries", "Fold jobs as they end"),
		eventStream), s.summaries)
	huma.Register(api, raw(get("/v1/tasks/{task}/output", "What all hosts say, as they say it"),
		eventStream), s.taskOutput)
	s.registerControl(api)
	switchRoutes{s.queue, s.stock, s.log, s.agreedWhole, s.gone, s.standing}.routes(api)
	rollRoutes{s.queue, s.log}.routes(api)
	gateRoutes{s.queue, s.log, s.hostsOn}.routes(api)
	groupRoutes{s.queue, s.stock, s.log}.routes(api)
	hostRoutes{s.queue, s.look, s.log, s.agreedWhole}.routes(api)
	blobRoutes{s.queue.Blobs, s.cfg.Blobs.Max, s.log}.routes(api)
	s.registerChains(api)
	s.registerWindows(api)
	s.registerSchedules(api)
	s.registerHistory(api)
	huma.Register(api, get("/v1/jobs/{job}", "Show a job"), s.job)
	huma.Register(api, post("/v1/jobs/{job}/ask", "Ask the host how a job ended that ended unknown"),
		s.ask)
	huma.Register(api, raw(get("/v1/jobs/{job}/output", "What the host said, byte for byte"),
		"application/octet-stream"), s.output)
	huma.Register(api, raw(get("/v1/events", "Follow what happens"), eventStream), s.events)

	s.registerHosts(api)
	huma.Register(api, get("/v1/inventory", "Show the inventory in force"), s.inventory)
	huma.Register(api, get("/v1/nodes", "List nodes"), s.nodes)
	huma.Register(api, get("/v1/queue", "Show what waits in each zone"), s.depths)
	huma.Register(api, get("/v1/runbooks", "List runbooks"), s.runbooks)
	huma.Register(api, get("/v1/runbooks/{runbook}", "Show a runbook"), s.runbook)

	huma.Register(api, get("/v1/facts", "List what hosts said of themselves"), s.facts)
	huma.Register(api, post("/v1/tasks/{task}/facts", "Keep the facts that a task gathered"), s.gather)

	addToken := post("/v1/tokens", "Make a token")
	addToken.DefaultStatus = http.StatusCreated
	huma.Register(api, addToken, s.addToken)
	huma.Register(api, get("/v1/tokens", "List tokens"), s.tokens)
	huma.Register(api, del("/v1/tokens/{name}", "Remove a token"), s.removeToken)

	huma.Register(api, get(healthPath, "Tell whether the server can work"), s.health)
	huma.Register(api, raw(get("/metrics", "Metrics for Prometheus"), "text/plain"),
		func(context.Context, *nothing) (*huma.StreamResponse, error) {
			return &huma.StreamResponse{Body: func(ctx huma.Context) {
				r, w := humago.Unwrap(ctx)
				s.serveMetrics(w, r)
			}}, nil
		})
}

// registerHosts names the routes about hosts.
func (s *Server) registerHosts(api huma.API) {
	huma.Register(api, operation(http.MethodGet, "/v1/hosts", "List hosts"), s.hosts)
	huma.Register(api, operation(http.MethodGet, "/v1/hosts/{host}", "Show a host"), s.host)
	query := operation(http.MethodPost, "/v1/hosts/query", "List hosts, by a long selector")
	query.MaxBodyBytes = submitMax
	huma.Register(api, query, s.queryHosts)
}

// registerControl names the routes by which operators stop and start things.
func (s *Server) registerControl(api huma.API) {
	post := func(path, what string) huma.Operation { return operation(http.MethodPost, path, what) }
	get := func(path, what string) huma.Operation { return operation(http.MethodGet, path, what) }

	cancel := post("/v1/tasks/{task}/cancel", "Cancel a task, or some of its jobs")
	cancel.MaxBodyBytes = submitMax
	huma.Register(api, cancel, s.cancel)
	retry := post("/v1/tasks/{task}/retry", "Do jobs of a task again, as a new task")
	retry.DefaultStatus = http.StatusCreated
	huma.Register(api, retry, s.retry)
	fsck := post("/v1/zones/{zone}/fsck", "Compare what the queue says in several places, and mend it")
	huma.Register(api, fsck, s.fsck)
	huma.Register(api, get("/v1/agreed", "Show what history keeps of what was agreed"),
		s.agreedReport)
	huma.Register(api, post("/v1/agreed/restore", "Put back what Redis has lost of what was agreed"),
		s.restore)
	huma.Register(api, post("/v1/agreed/forsake", "Go on without what Redis has lost of it"),
		s.forsake)
	huma.Register(api, get("/v1/pauses", "Show what stands still by order"), s.pauses)
}

// registerWindows names the routes about when work may be done.
func (s *Server) registerWindows(api huma.API) {
	post := func(path, what string) huma.Operation { return operation(http.MethodPost, path, what) }
	get := func(path, what string) huma.Operation { return operation(http.MethodGet, path, what) }

	apply := operation(http.MethodPut, "/v1/windows", "Say when work may be done")
	apply.MaxBodyBytes = submitMax
	huma.Register(api, apply, whileAgreed(s.agreedWhole, s.applyWindows))
	huma.Register(api, get("/v1/windows", "Show windows, freezes and approvals"), s.windows)
	const window = "/v1/windows/{window}"
	huma.Register(api, get(window+"/next", "List the next occurrences of a window"), s.windowNext)
	huma.Register(api, post(window+"/approve", "Approve occurrences of a window"),
		whileAgreed(s.agreedWhole, s.approve))
	huma.Register(api, post("/v1/approvals/{approval}/withdraw", "Take an approval back"),
		whileAgreed(s.agreedWhole, s.withdraw))
	huma.Register(api, get("/v1/hosts/{host}/next", "List when a host is open next"), s.hostNext)
	huma.Register(api, get("/v1/hosts/{host}/windows", "Explain which windows hold for a host"),
		s.hostWindows)
	huma.Register(api, post("/v1/freezes", "Freeze: let no work begin"),
		whileAgreed(s.agreedWhole, s.freeze))
	huma.Register(api, post("/v1/freezes/{freeze}/lift", "Lift a freeze"),
		whileAgreed(s.agreedWhole, s.liftFreeze))
}

func operation(method, path, summary string) huma.Operation {
	return huma.Operation{OperationID: huma.GenerateOperationID(method, path, &nothing{}),
		Method: method, Path: path, Summary: summary,
		MaxBodyBytes: smallMax, BodyReadTimeout: bodyTimeout,
		Errors: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
			http.StatusUnprocessableEntity, http.StatusServiceUnavailable}}
}

// raw is an operation whose answer is not JSON.
func raw(op huma.Operation, contentType string) huma.Operation {
	op.Responses = map[string]*huma.Response{"200": {Description: "OK",
		Content: map[string]*huma.MediaType{contentType: {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	return op
}

// around is what every request goes through: it is counted, guarded, and told
// when there is no such route.
func (s *Server) around(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{ResponseWriter: w}
		begun := time.Now()
		defer func() {
			v := recover()
			if v != nil {
				s.failed(x, r, v)
			}
			waits := x.Header().Get("Content-Type") == eventStream || r.URL.Query().Has("wait")
			s.meters.Answered(r.Pattern, x.status, time.Since(begun), waits)
			if v != nil && x.status != http.StatusInternalServerError {
				panic(http.ErrAbortHandler) // the client must not take a part for the whole
			}
		}()
		s.guard(x, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, pattern := mux.Handler(r); pattern == "" {
				noRoute(mux, w, r)
				return
			}
			mux.ServeHTTP(w, r)
		}))
	})
}

// failed is about a handler that panicked. The API library does so when an
// answer cannot be written, which is not worth a word if the client has gone.
func (s *Server) failed(x *exchange, r *http.Request, v any) {
	err, isError := v.(error)
	var network net.Error
	if isError && (r.Context().Err() != nil || errors.As(err, &network) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		return
	}
	s.log.Error("request failed", "method", r.Method, "route", r.Pattern, "panic", fmt.Sprint(v),
		"stack", string(debug.Stack()))
	if x.status == 0 {
		writeProblem(x, huma.Error500InternalServerError("a mistake in muster: its log says more"))
	}
}

// noRoute answers where nothing is, or not by this method.
func noRoute(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	h, _ := mux.Handler(r)
	probe := &muted{header: http.Header{}}
	h.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		allow := probe.header.Get("Allow")
		writeProblem(w, huma.ErrorWithHeaders(huma.Error405MethodNotAllowed(fmt.Sprintf(
			"%s takes %s", clip(r.URL.Path), allow)), http.Header{"Allow": {allow}}))
		return
	}
	writeProblem(w, huma.Error404NotFound(fmt.Sprintf(
		"there is no %s: /openapi.json lists what there is", clip(r.URL.Path))))
}

// muted hears what a handler says and tells nobody.
type muted struct {
	header http.Header
	status int
}

// Header is the head of the answer.
func (m *muted) Header() http.Header { return m.header }

// WriteHeader notes the status.
func (m *muted) WriteHeader(status int) { m.status = status }

// Write drops the answer.
func (m *muted) Write(b []byte) (int, error) { return len(b), nil }
