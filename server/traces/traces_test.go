package traces_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/trace"
	"muster/server/traces"
	"muster/testkit/otlptest"
)

// meters count results, and wake who waits for them.
type meters struct {
	mu      sync.Mutex
	n       map[string]int
	changed chan struct{}
}

func newMeters() *meters { return &meters{n: map[string]int{}, changed: make(chan struct{})} }

func (m *meters) Traced(result string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n[result] += n
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *meters) Wait(int) {}

func (m *meters) now() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.n)
}

func (m *meters) until(t *testing.T, result string, n int) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		m.mu.Lock()
		has, next := m.n[result], m.changed
		m.mu.Unlock()
		if has >= n {
			return
		}
		select {
		case <-next:
		case <-late:
			t.Fatalf("%d traces are %s, want %d: %v", has, result, n, m.now())
		}
	}
}

// past is a history that knows nothing, or cannot be read.
type past struct{ err error }

func (p past) Courses(context.Context, jobs.TaskID, []string) (map[string]api.Course, error) {
	return nil, p.err
}

func (p past) Committed(context.Context, jobs.TaskID) (time.Time, error) {
	return time.Time{}, p.err
}

const task = jobs.TaskID("0wcy7y2fb2")

// started is a tracer that runs until the test ends, or stop is called.
func started(t *testing.T, c traces.Config, hurry, keep time.Duration) (*traces.Tracer, *meters, func()) {
	t.Helper()
	m := newMeters()
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	tr, err := traces.New(traces.Needs{Config: c, Version: "1.2.3", Name: func() string { return "s1" },
		Past: past{errors.New("SQL is away")}, Meters: m, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	tr.Hurry(hurry, keep)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); tr.Run(ctx) }()
	stop := sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return tr, m, stop
}

// batch returns jobs of one task that ended in some way, as history stores them.
func batch(o jobs.Outcome, traceparent string, hosts ...string) history.Batch {
	var b history.Batch
	at := time.Date(2026, 11, 29, 1, 2, 3, 0, time.UTC)
	for _, host := range hosts {
		id := jobs.NewID(task, host)
		b.Events = append(b.Events, jobs.Happening{Event: "end", Object: string(id)})
		b.Ended = append(b.Ended, api.PastJob{JobInfo: jobs.JobInfo{ID: id, Host: host, State: jobs.Ended,
			Outcome: o, Finished: jobs.Time{Time: at}, Attempt: 1}, Runbook: "exec",
			Asked: &api.Asked{Ran: &jobs.Ran{Trace: traceparent}}})
	}
	return b
}

func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("fw%05d", i)
	}
	return list
}

func count(n int) func([]otlptest.Span) bool {
	return func(list []otlptest.Span) bool { return len(list) >= n }
}

func TestBadEndsAreAlwaysSentAndOthersByTheirTask(t *testing.T) {
	t.Parallel()
	const own, other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	for _, o := range jobs.Outcomes() {
		bad := o != jobs.Succeeded && o != jobs.Cancelled && o != jobs.Superseded && o != jobs.Skipped
		for _, c := range []struct {
			oneIn  int
			parent string
			want   bool
		}{{0, "", bad}, {1, "", true}, {0, own, true}, {1, other, bad}} {
			col := otlptest.Start(t)
			tr, m, stop := started(t, traces.Config{Endpoint: col.URL, OneIn: c.oneIn}, time.Millisecond, time.Minute)
			tr.Hear(batch(o, c.parent, "fw001"))
			stop()
			if got := m.now()["sent"] == 1; got != c.want || (len(col.Spans()) > 0) != c.want {
				t.Errorf("%s, 1 in %d, caller %q: sent is %v, want %v", o, c.oneIn, c.parent, got, c.want)
			}
		}
	}
}

func TestAllServersSendTheTracesOfTheSameTasks(t *testing.T) {
	t.Parallel()
	a, b := traces.Config{OneIn: 7}, traces.Config{OneIn: 7, Endpoint: "https://another.example"}
	sent := 0
	for i := range 2000 {
		id := jobs.NewTaskID(time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC), uint16(i))
		if a.IsWanted(id, "", false) != b.IsWanted(id, "", false) {
			t.Fatalf("they differ about %s", id)
		}
		if a.IsWanted(id, "", false) {
			sent++
		}
	}
	if sent < 200 || sent > 400 {
		t.Errorf("%d of 2,000 tasks are sent, want about 286", sent)
	}
}

func TestARefusalForNowIsTriedAgainAndOneForGoodIsNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status, tries int
		after         string
		result        string
	}{{429, 3, "0", "sent"}, {503, 3, "", "sent"}, {502, 3, "", "sent"}, {504, 3, "nonsense", "sent"},
		{400, 1, "", "refused"}, {401, 1, "", "refused"}, {404, 1, "", "refused"}, {413, 1, "", "refused"},
		{500, 1, "", "refused"}, {307, 1, "", "refused"}} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			t.Parallel()
			col := otlptest.Start(t)
			col.Fail(func(try int, w http.ResponseWriter, _ *http.Request) bool {
				if try < 3 {
					w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
					w.Header().Set("Retry-After", c.after)
					w.WriteHeader(c.status)
				}
				return try < 3
			})
			tr, m, stop := started(t, traces.Config{Endpoint: col.URL}, time.Millisecond, time.Minute)
			tr.Hear(batch(jobs.Failed, "", "fw001"))
			m.until(t, c.result, 1)
			stop()
			if n, _ := col.Tries(); n != c.tries {
				t.Errorf("%d tries, want %d", n, c.tries)
			}
			if words := tr.Words(); (words == "") != (c.result == "sent") {
				t.Errorf("it says %q", words)
			}
		})
	}
}

func TestTheCollectorSaysHowLongToWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 1, 2, 3, 0, time.UTC)
	for text, want := range map[string]time.Duration{"": 0, "3": 3 * time.Second, "-1": 0, "x": 0,
		"99999999999": 0, "86400": 5 * time.Minute,
		now.Add(7 * time.Second).Format(http.TimeFormat): 7 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):      0} {
		if got := traces.AfterOf(text, now); got != want && text != "99999999999" {
			t.Errorf("Retry-After %q is %s, want %s", text, got, want)
		}
	}
	col := otlptest.Start(t)
	var first, second time.Time
	col.Fail(func(try int, w http.ResponseWriter, _ *http.Request) bool {
		if try == 1 {
			first = time.Now()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		second = time.Now()
		return false
	})
	tr, _, stop := started(t, traces.Config{Endpoint: col.URL}, time.Millisecond, time.Minute)
	tr.Hear(batch(jobs.Failed, "", "fw001"))
	col.Until("the second try", count(1))
	stop()
	if d := second.Sub(first); d < time.Second {
		t.Errorf("it asked for 1 s, and the next try came after %s", d)
	}
}

// The historian must not wait, whatever the collector does.
func TestACollectorThatHangsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	col := otlptest.Start(t)
	release := make(chan struct{})
	col.Fail(func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	t.Cleanup(func() { close(release) })
	tr, m, stop := started(t, traces.Config{Endpoint: col.URL}, time.Millisecond, time.Minute)
	const n = traces.QueueMax + 2000
	b := batch(jobs.Failed, "", names(n)...)
	begun := time.Now()
	tr.Hear(b)
	if d := time.Since(begun); d > 10*time.Second {
		t.Errorf("%d ends took %s", n, d)
	}
	if m.now()["dropped"] == 0 {
		t.Error("nothing was dropped")
	}
	begun = time.Now()
	stop()
	if d := time.Since(begun); d > 20*time.Second {
		t.Errorf("the server waited %s for the collector when it stopped", d)
	}
	all := 0
	for _, k := range m.now() {
		all += k
	}
	if all != n {
		t.Errorf("%d of %d traces are counted: %v", all, n, m.now())
	}
}

func TestACollectorThatIsAwayLosesOldTracesAndGetsNewOnes(t *testing.T) {
	t.Parallel()
	col := otlptest.Start(t)
	var away sync.Map
	away.Store("is", true)
	col.Fail(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		_, is := away.Load("is")
		if is {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return is
	})
	tr, m, _ := started(t, traces.Config{Endpoint: col.URL}, time.Millisecond, 20*time.Millisecond)
	tr.Hear(batch(jobs.Failed, "", "fw001"))
	m.until(t, "lost", 1)
	away.Delete("is")
	tr.Hear(batch(jobs.Unknown, "", "fw002"))
	m.until(t, "sent", 1)
	for _, s := range col.Spans() {
		if s.Attributes["muster.host"] == "fw001" {
			t.Error("a trace is counted as lost, and was sent")
		}
	}
}

func TestAServerThatStopsSendsWhatIsLeft(t *testing.T) {
	t.Parallel()
	col := otlptest.Start(t)
	tr, m, stop := started(t, traces.Config{Endpoint: col.URL}, time.Second, time.Minute)
	tr.Hear(batch(jobs.Failed, "", names(450)...))
	stop()
	if m.now()["sent"] != 450 || len(col.Spans()) < 450 {
		t.Errorf("%v were sent, and %d spans came", m.now(), len(col.Spans()))
	}
	if s := col.Service(); s["service.name"] != "muster" || s["service.instance.id"] != "s1" ||
		s["service.version"] != "1.2.3" {
		t.Errorf("they are of %v", s)
	}
}

func TestACollectorThatTakesSomeSpansIsHeard(t *testing.T) {
	t.Parallel()
	answer := otlptest.Rejecting(3, "too old\nby far")
	if n, words := traces.Partial("application/x-protobuf; a=b", answer); n != 3 || words != "too old\nby far" {
		t.Errorf("it refused %d spans: %q", n, words)
	}
	for _, cut := range [][]byte{nil, answer[:3], {0xff}, []byte("{}")} {
		if n, _ := traces.Partial("application/x-protobuf", cut); n != 0 {
			t.Errorf("% x refuses %d spans", cut, n)
		}
	}
	col := otlptest.Start(t)
	col.Fail(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, err := w.Write(answer)
		return err == nil
	})
	tr, m, _ := started(t, traces.Config{Endpoint: col.URL}, time.Millisecond, time.Minute)
	tr.Hear(batch(jobs.Failed, "", "fw001"))
	m.until(t, "partly", 1)
}

func TestHeadersProveWhoSendsAndNoErrorNamesThem(t *testing.T) {
	t.Parallel()
	h, err := traces.ParseHeaders("h", []byte("# for the collector\n\nAuthorization: Bearer swordfish\nX-Scope: a\n"))
	if err != nil || h.Get("Authorization") != "Bearer swordfish" || h.Get("X-Scope") != "a" {
		t.Fatalf("%v, %v", h, err)
	}
	_, err = traces.ParseHeaders("h", []byte("swordfish\nA b: swordfish\nHost: swordfish\nX:\nY: sword\x01fish\n"))
	for i := 1; i <= 5; i++ {
		if !strings.Contains(fmt.Sprint(err), fmt.Sprintf("h:%d: ", i)) {
			t.Errorf("no word of line %d: %v", i, err)
		}
	}
	if strings.Contains(fmt.Sprint(err), "swordfish") {
		t.Errorf("the error names a secret: %v", err)
	}
	col := otlptest.Start(t)
	c := traces.Config{Endpoint: col.URL, Timeout: time.Minute, Headers: func() (http.Header, error) { return h, nil }}
	if err := traces.Probe(t.Context(), c, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	_, got := col.Tries()
	if got[0].Get("Authorization") != "Bearer swordfish" || len(col.Spans()) != 0 || h.Get("Content-Type") != "" {
		t.Errorf("the probe sent %v", got)
	}
	col.Fail(func(_ int, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(403); return true })
	if err := traces.Probe(t.Context(), c, ""); err == nil || strings.Contains(err.Error(), "swordfish") {
		t.Errorf("a refused probe: %v", err)
	}
}

func TestAConfigurationIsCheckedWhole(t *testing.T) {
	t.Parallel()
	headers := func() (http.Header, error) { return nil, nil }
	for _, c := range []struct {
		of   traces.Config
		want []string
	}{
		{traces.Default(), nil},
		{traces.Config{Endpoint: "https://c.example:4318", Timeout: time.Second, Headers: headers}, nil},
		{traces.Config{Endpoint: "http://127.0.0.1:4318", Timeout: time.Second, Headers: headers}, nil},
		{traces.Config{Endpoint: "http://c.example", Timeout: time.Second}, nil},
		{traces.Config{OneIn: -1, Cert: "c"}, []string{"traces.one_in = -1", "traces.timeout = 0s",
			"want both or none", "traces.endpoint, which is empty"}},
		{traces.Config{Endpoint: "http://c.example", Timeout: time.Hour, Headers: headers, CA: "ca"},
			[]string{"traces.timeout = 1h", "unencrypted", "traces.tls is for https://"}},
		{traces.Config{Endpoint: "https://u:swordfish@c.example", Timeout: 1}, []string{"a user or a password"}},
		{traces.Config{Endpoint: "://swordfish", Timeout: 1}, []string{"cannot be read"}},
		{traces.Config{Endpoint: "c.example:4318", Timeout: 1}, []string{"want the URL of a collector"}},
		{traces.Config{Endpoint: "ftp://c.example", Timeout: 1}, []string{"want the URL of a collector"}},
	} {
		err := c.of.Validate()
		if (err == nil) != (c.want == nil) {
			t.Errorf("%+v: %v", c.of.Endpoint, err)
		}
		for _, want := range c.want {
			if !strings.Contains(fmt.Sprint(err), want) || strings.Contains(err.Error(), "swordfish") {
				t.Errorf("%+v: %v, want %q", c.of.Endpoint, err, want)
			}
		}
	}
	if tr, err := traces.New(traces.Needs{}); tr != nil || err != nil {
		t.Errorf("without an endpoint there is %v, %v", tr, err)
	}
	var none *traces.Tracer
	none.Hear(batch(jobs.Failed, "", "fw001"))
	none.Run(t.Context())
	if none.Words() != "" {
		t.Error("a tracer that is not there says something")
	}
}

// Names come from inventories, runbooks and nodes: they stay data, and bounded.
func TestHostileNamesAreData(t *testing.T) {
	t.Parallel()
	col := otlptest.Start(t)
	tr, _, stop := started(t, traces.Config{Endpoint: col.URL}, time.Millisecond, time.Minute)
	b := batch(jobs.Outcome("won\xff"), "", "fw001")
	j := &b.Ended[0]
	j.Runbook, j.Node = "a\x00\n\xffb\"}],"+strings.Repeat("x", 5000), "\u202enode\xc3\x28"
	j.Error, j.Note, j.Zone = "output of the host", "output of the host", strings.Repeat("z", 5000)
	j.Asked.On, j.Asked.Reason = "output of the host", "output of the host"
	tr.Hear(b)
	list := col.Until("the job", count(1))
	stop()
	for _, s := range list {
		if len(s.Name) > 250 || strings.Contains(fmt.Sprint(s), "output of the host") {
			t.Errorf("span %+v", s)
		}
		for k, v := range s.Attributes {
			if text, ok := v.(string); ok && len(text) > 200 {
				t.Errorf("%s has %d bytes", k, len(text))
			}
		}
	}
	if s := list[0]; s.Status != "STATUS_CODE_ERROR" || s.Trace != trace.OfJob(jobs.NewID(task, "fw001")).String() {
		t.Errorf("span %+v", s)
	}
}

func TestATaskIsSentOnceThoughItEndsInEachZone(t *testing.T) {
	t.Parallel()
	col := otlptest.Start(t)
	tr, m, stop := started(t, traces.Config{Endpoint: col.URL}, time.Millisecond, time.Minute)
	over := history.Batch{Events: []jobs.Happening{{Event: "task", Object: string(task)}},
		Tasks: []jobs.TaskInfo{{Task: task, State: jobs.TaskEnded, Outcomes: jobs.Counts{jobs.Failed: 1}}}}
	open := over
	open.Tasks = []jobs.TaskInfo{{Task: task, State: jobs.TaskRunning, Outcomes: jobs.Counts{jobs.Failed: 1}}}
	for _, b := range []history.Batch{open, over, over} {
		tr.Hear(b)
	}
	stop()
	if list := col.Spans(); m.now()["sent"] != 1 || len(list) != 2 {
		t.Errorf("%v, %v", m.now(), list)
	}
}
