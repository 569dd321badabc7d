// Package otlptest has a collector of traces for tests. It takes OTLP over HTTP, decodes it with the
// messages that OpenTelemetry publishes, and fails as told.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A Collector keeps the spans that it got.
type Collector struct {
	URL string

	t       testing.TB
	mu      sync.Mutex
	changed chan struct{} // closed at the next request
	spans   []Span
	service map[string]any
	headers []http.Header
	tries   int
	fail    func(try int, w http.ResponseWriter, r *http.Request) bool
}

// A Span is one that the collector got, in words.
type Span struct {
	Trace, ID, Parent string
	Name, Status      string
	Kind              string
	Message           string
	Start, End        time.Time
	Attributes        map[string]any
	Links             []string // TRACE-SPAN
}

// Start starts a collector that ends with the test.
func Start(t testing.TB) *Collector {
	c := &Collector{t: t, changed: make(chan struct{})}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	c.URL = srv.URL
	return c
}

// Fail lets f answer requests, numbered from 1; if it returns false the collector takes them.
func (c *Collector) Fail(f func(try int, w http.ResponseWriter, r *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = f
}

// ServeHTTP takes a request.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.tries++
	try, fail := c.tries, c.fail
	c.headers = append(c.headers, r.Header)
	c.mu.Unlock()
	defer c.tell()
	if fail != nil && fail(try, w, r) {
		return
	}
	d, err := read(r)
	if err != nil {
		c.t.Errorf("a request to the collector: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.keep(d)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

func read(r *http.Request) (*otlp.TracesData, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
		r.Header.Get("Content-Type") != "application/x-protobuf" {
		return nil, fmt.Errorf("%s %s with %q", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	var d otlp.TracesData
	return &d, proto.Unmarshal(body, &d)
}

func (c *Collector) keep(d *otlp.TracesData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range d.ResourceSpans {
		c.service = words(of.Resource.Attributes)
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, spanOf(s))
			}
		}
	}
}

func spanOf(s *otlp.Span) Span {
	out := Span{Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId),
		Parent: hex.EncodeToString(s.ParentSpanId), Name: s.Name, Kind: s.Kind.String(),
		Start: time.Unix(0, int64(s.StartTimeUnixNano)).UTC(),
		End:   time.Unix(0, int64(s.EndTimeUnixNano)).UTC(), Attributes: words(s.Attributes),
		Status: s.Status.GetCode().String(), Message: s.Status.GetMessage()}
	for _, l := range s.Links {
		out.Links = append(out.Links, hex.EncodeToString(l.TraceId)+"-"+hex.EncodeToString(l.SpanId))
	}
	return out
}

func words(list []*common.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[kv.Key] = v.IntValue
		case *common.AnyValue_DoubleValue:
			out[kv.Key] = v.DoubleValue
		}
	}
	return out
}

// Service returns the attributes of the program that sent the last spans.
func (c *Collector) Service() map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.service
}

// Tries returns the number of requests, and the headers of each.
func (c *Collector) Tries() (int, []http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tries, c.headers
}

// Spans returns all spans so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Until waits until the spans so far are as wanted, and returns them.
func (c *Collector) Until(what string, is func([]Span) bool) []Span {
	c.t.Helper()
	late := time.After(time.Minute)
	for {
		c.mu.Lock()
		next := c.changed
		c.mu.Unlock()
		list := c.Spans()
		if is(list) {
			return list
		}
		select {
		case <-next:
		case <-late:
			c.t.Fatalf("the collector waits in vain for %s; it has %d spans: %v", what, len(list), list)
		}
	}
}

// Rejecting is the answer of a collector that refuses some spans of a request, and says why.
func Rejecting(spans int, why string) []byte {
	var in []byte
	in = protowire.AppendTag(in, 1, protowire.VarintType)
	in = protowire.AppendVarint(in, uint64(spans))
	in = protowire.AppendTag(in, 2, protowire.BytesType)
	in = protowire.AppendString(in, why)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), in)
}
