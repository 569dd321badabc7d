package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/attempt"
	"muster/worker/secrets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("connection refused")

// fakeQueue is a queue of one zone in memory. It hands out due jobs in the order in which they were
// put, and gives a repeated request its earlier answer.
type fakeQueue struct {
	t       testing.TB
	fault   func(n int) (before, after error) // the error of the nth try, from 1
	verdict func(c jobs.Checkpoint) (jobs.Verdict, error)
	late    map[jobs.ID]bool // results that do not count
	stops   func(ids []jobs.ID) (map[jobs.ID]string, error)

	slowStops time.Duration
	reorder   func(ctx context.Context) (jobs.Reordering, error)

	mu      sync.Mutex // guards all below while the worker runs
	delay   time.Duration
	due     []jobs.Grant
	specs   map[jobs.TaskID]jobs.Spec
	empty   jobs.Reply // the answer when nothing is due; zero: StatusNext
	answers map[string]jobs.Reply
	token   jobs.Token
	record
}

// record notes the calls to a queue.
type record struct {
	inFlight int
	tries    []jobs.Step   // all in order, with the repeated ones
	times    []time.Time   // of the tries
	calls    []jobs.Step   // each carried out once
	results  []jobs.Result // of the calls
	asked    []jobs.Checkpoint
	stopsFor [][]jobs.ID // the jobs of each question for stops
	heard    []hearing   // the calls of Speak
	speak    func(ctx context.Context, list []jobs.Speech) ([]jobs.ID, error)
	gate     func(step int, late bool) (jobs.GateAnswer, error) // nil: nobody answers
	walks    []time.Time                                        // the times of Reorder
	walking  int
}

func newQueue(t testing.TB) *fakeQueue {
	return &fakeQueue{
		t:       t,
		delay:   time.Millisecond,
		specs:   map[jobs.TaskID]jobs.Spec{},
		answers: map[string]jobs.Reply{},
		fault:   func(int) (error, error) { return nil, nil },
		verdict: func(jobs.Checkpoint) (jobs.Verdict, error) { return jobs.Go, nil },
		stops:   func([]jobs.ID) (map[jobs.ID]string, error) { return nil, nil },
		reorder: func(context.Context) (jobs.Reordering, error) {
			return jobs.Reordering{Again: time.Minute}, nil
		},
	}
}

func (q *fakeQueue) Step(ctx context.Context, zone string, s jobs.Step) (jobs.Reply, error) {
	if zone != "z" || s.Node != "n1" || s.Slot != "3" {
		q.t.Errorf("step for zone %q, node %q, slot %q", zone, s.Node, s.Slot)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		q.t.Error("a call without a deadline")
	}
	q.mu.Lock()
	q.inFlight++
	if q.inFlight > 1 {
		q.t.Error("two calls of one slot at a time")
	}
	q.tries = append(q.tries, s)
	q.times = append(q.times, time.Now())
	before, after := q.fault(len(q.tries))
	delay := q.delay
	q.mu.Unlock()
	time.Sleep(delay)

	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight--
	if err := errors.Join(before, ctx.Err()); err != nil {
		return jobs.Reply{}, err
	}
	reply, ok := q.answers[s.Request]
	if ok {
		q.same(s)
	} else {
		reply = q.carryOut(s)
	}
	if after != nil {
		return jobs.Reply{}, after
	}
	return reply, nil
}

// same reports an error if a repeated request has another content.
func (q *fakeQueue) same(s jobs.Step) {
	for _, c := range q.calls {
		if c.Request == s.Request && !reflect.DeepEqual(c, s) {
			q.t.Errorf("request %s was repeated as another call", s.Request)
		}
	}
}

func (q *fakeQueue) carryOut(s jobs.Step) jobs.Reply {
	q.calls = append(q.calls, s)
	q.results = append(q.results, s.Results...)
	now := jobs.MicrosOf(time.Now())
	r := jobs.Reply{Status: jobs.StatusNext, Now: now, Next: now.Add(time.Hour)}
	if q.empty.Status != "" {
		r = q.empty
		r.Now = now
	}
	for _, res := range s.Results {
		if q.late[res.Job] {
			r.Late = append(r.Late, res.Job)
		}
	}
	n := min(s.Want, len(q.due))
	if n > 0 {
		r.Status, r.Next = jobs.StatusJobs, 0
		r.Jobs, q.due = q.due[:n:n], q.due[n:]
		r.Specs = q.newSpecs(r.Jobs, s.Known)
	}
	q.answers[s.Request] = r
	return r
}

func (q *fakeQueue) newSpecs(grants []jobs.Grant, known []jobs.TaskID) map[jobs.TaskID]jobs.Spec {
	news := map[jobs.TaskID]jobs.Spec{}
	for _, g := range grants {
		if spec, ok := q.specs[g.Job.Task()]; ok {
			news[g.Job.Task()] = spec
		}
	}
	for _, id := range known {
		delete(news, id)
	}
	return news
}

func (q *fakeQueue) Checkpoint(ctx context.Context, zone string, c jobs.Checkpoint) (
	jobs.Verdict, error,
) {
	time.Sleep(time.Millisecond)
	if err := ctx.Err(); err != nil {
		return "", err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = append(q.asked, c)
	return q.verdict(c)
}

func (q *fakeQueue) Stops(ctx context.Context, zone string, ids []jobs.ID) (
	map[jobs.ID]string, error,
) {
	if _, bounded := ctx.Deadline(); !bounded || zone != "z" {
		q.t.Errorf("stops of zone %q, bounded: %t", zone, bounded)
	}
	select {
	case <-time.After(max(q.slowStops, time.Millisecond)):
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	ids = slices.Sorted(slices.Values(ids))
	q.stopsFor = append(q.stopsFor, ids)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return q.stops(ids)
}

func (q *fakeQueue) Reorder(ctx context.Context, zone string, o jobs.Overload) (
	jobs.Reordering, error,
) {
	if zone != "z" || o.Validate() != nil {
		q.t.Errorf("reorder of zone %q as %+v", zone, o)
	}
	q.mu.Lock()
	q.walks = append(q.walks, time.Now())
	if q.walking++; q.walking > 1 {
		q.t.Error("two walks at a time")
	}
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.walking--
	}()
	return q.reorder(ctx)
}

// hearing is a call of Speak, and its time.
type hearing struct {
	at   time.Time
	list []jobs.Speech
}

func (q *fakeQueue) Speak(ctx context.Context, zone string, list []jobs.Speech) ([]jobs.ID, error) {
	if _, bounded := ctx.Deadline(); !bounded || zone != "z" || len(list) == 0 {
		q.t.Errorf("%d speeches in zone %q, bounded: %t", len(list), zone, bounded)
	}
	q.mu.Lock()
	q.heard = append(q.heard, hearing{time.Now(), list})
	q.mu.Unlock()
	if q.speak == nil {
		return nil, nil
	}
	return q.speak(ctx, list)
}

// walked returns the number of calls of Reorder.
func (q *fakeQueue) walked() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.walks)
}

// put makes a fresh job due on a host. Its attempt has the time attemptTime.
func (q *fakeQueue) put(task jobs.TaskID, host string, change ...func(*jobs.Grant)) jobs.Grant {
	g := q.grant(task, host, change...)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = append(q.due, g)
	return g
}

func (q *fakeQueue) grant(task jobs.TaskID, host string, change ...func(*jobs.Grant)) jobs.Grant {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.token++
	g := jobs.Grant{
		Job:     jobs.NewID(task, host),
		Token:   q.token,
		Mode:    jobs.ModeFresh,
		Attempt: 1,
		Timeout: attemptTime,
		Host:    &fleet.Host{Name: host, Address: "127.0.0.1", Port: 22, Zone: "z"},
	}
	for _, c := range change {
		c(&g)
	}
	return g
}

// resultsOf returns all results of a job, in order.
func (q *fakeQueue) resultsOf(id jobs.ID) []jobs.Result {
	q.mu.Lock()
	defer q.mu.Unlock()
	var list []jobs.Result
	for _, r := range q.results {
		if r.Job == id {
			list = append(list, r)
		}
	}
	return list
}

// carriedOut returns the number of calls that were carried out so far.
func (q *fakeQueue) carriedOut() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls)
}

// only returns the result of a job that must have exactly one.
func (q *fakeQueue) only(id jobs.ID) jobs.Result {
	q.t.Helper()
	list := q.resultsOf(id)
	if len(list) != 1 {
		q.t.Fatalf("%d results of %s, want 1: %+v", len(list), id, list)
	}
	return list[0]
}

// fakeHosts pretends the hosts. By default each can be reached, and each step succeeds after a
// second.
type fakeHosts struct {
	door   func(ctx context.Context, h fleet.Host) (attempt.Conn, error) // connects to real hosts; nil: to these
	dial   func(ctx context.Context, h fleet.Host) error
	run    func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error)
	upload func(ctx context.Context, h fleet.Host, u remote.Upload) error
	kin    attempt.Kin // the members of groups
	mark   func(h fleet.Host, m remote.Marker) (remote.Marking, error)

	mu     sync.Mutex // guards all below
	open   int
	most   int      // open at a time
	shells []string // host: shell

	passwords map[string]seal.Text // of sudo, by host
}

func newHosts() *fakeHosts {
	return &fakeHosts{
		dial: func(context.Context, fleet.Host) error { return nil },
		run: func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			return works(ctx, time.Second)
		},
		upload: func(context.Context, fleet.Host, remote.Upload) error { return nil },
	}
}

// works is a command that takes a time d, or until ctx ends.
func works(ctx context.Context, d time.Duration) (remote.Result, error) {
	select {
	case <-time.After(d):
		return remote.Result{}, nil
	case <-ctx.Done():
		return remote.Result{ExitCode: -1}, fault(remote.KindCancelled, true, context.Cause(ctx))
	}
}

func fault(k remote.Kind, sent bool, err error) error {
	op := "run"
	if !sent {
		op = "connect"
	}
	return &remote.Error{Op: op, Host: "fw1", Addr: "127.0.0.1:22", Kind: k, Sent: sent, Err: err}
}

func (f *fakeHosts) connect(ctx context.Context, h fleet.Host) (attempt.Conn, error) {
	if f.door != nil {
		return f.door(ctx, h)
	}
	if err := f.dial(ctx, h); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
	f.most = max(f.most, f.open)
	return &fakeConn{f: f, host: h}, nil
}

type fakeConn struct {
	f    *fakeHosts
	host fleet.Host
}

func (c *fakeConn) Run(ctx context.Context, cmd remote.Command) (remote.Result, error) {
	c.f.mu.Lock()
	c.f.shells = append(c.f.shells, c.host.Name+": "+cmd.Shell)
	c.f.mu.Unlock()
	return c.f.run(ctx, c.host, cmd)
}

func (c *fakeConn) Upload(ctx context.Context, u remote.Upload) error {
	return c.f.upload(ctx, c.host, u)
}

func (c *fakeConn) Mark(_ context.Context, m remote.Marker) (remote.Marking, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return c.f.mark(c.host, m)
}

func (c *fakeConn) Close() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.open--
	return nil
}

// started lists "host: shell" of all steps so far.
func (f *fakeHosts) started() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.shells...)
}

const (
	stepTime = 20 * time.Second // timeout of every step
	task1    = jobs.TaskID("0000000001")
)

// attemptTime is the lock of an attempt whose steps have stepTime.
var attemptTime = jobs.AttemptTimeout(stepTime)

// spec returns a task with these steps.
func spec(t testing.TB, steps ...scripts.Step) jobs.Spec {
	t.Helper()
	book := scripts.Frozen{Runbook: "test", Steps: steps}
	action, err := json.Marshal(book)
	if err != nil {
		t.Fatal(err)
	}
	return jobs.Spec{Inventory: "v7", Timeout: attemptTime, Retry: jobs.DefaultPolicy(), Action: action}
}

func shell(name string) scripts.Step {
	return scripts.Step{Name: name, Kind: scripts.KindRun, Run: "do " + name, Timeout: stepTime}
}

func repeatable(name string) scripts.Step {
	s := shell(name)
	s.Repeatable = true
	return s
}

// stand is a worker with fakes around it.
type stand struct {
	t      testing.TB
	q      *fakeQueue
	hosts  *fakeHosts
	times  *fakeTimes
	cfg    Config
	orders chan jobs.Order
	report func(jobs.Report) // replaces gather
	log    hclog.Logger
	bootClock
	stores

	stop context.CancelFunc
	done chan struct{}
	err  error // valid after done

	mu      sync.Mutex
	reports []jobs.Report // guarded by mu
}

// bootClock is the boot clock of the worker.
type bootClock struct {
	zero  time.Time
	slept atomic.Int64 // the time for which the process was stopped, in ns
}

// stores holds the further doors of an attempt.
type stores struct {
	blobs  func(context.Context, string, int64) (io.ReadSeekCloser, error)
	unseal func(task, argument, sealed string) (seal.Text, error)
	fetch  func(context.Context, secrets.Ask) (seal.Text, error)
	trust  attempt.Trust

	committed func(context.Context, string, jobs.TaskID) (jobs.Micros, error)
	answer    func(context.Context, string, jobs.Reading) error
}

// bubble runs a test in fake time, with one task of one step.
func bubble(t *testing.T, f func(t *testing.T, s *stand)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stand{
			t:         t,
			q:         newQueue(t),
			hosts:     newHosts(),
			times:     &fakeTimes{},
			cfg:       Default(),
			orders:    make(chan jobs.Order, 1),
			log:       hclog.NewNullLogger(),
			bootClock: bootClock{zero: time.Now().Add(-time.Hour)},
			done:      make(chan struct{}),
		}
		s.q.specs[task1] = spec(t, shell("only"))
		f(t, s)
	})
}

func (s *stand) clock() time.Duration {
	return time.Since(s.zero) + time.Duration(s.slept.Load())
}

// start runs the worker with these jobs from its master.
func (s *stand) start(grants ...jobs.Grant) {
	s.t.Helper()
	h := jobs.Handover{Node: "n1", Slot: "3", Zone: "z", Sent: s.clock()}
	h.Reply = jobs.Reply{Jobs: grants, Specs: s.q.newSpecs(grants, nil)}
	if len(grants) > 0 {
		h.Reply.Status = jobs.StatusJobs
	}
	s.startWith(h)
}

func (s *stand) startWith(h jobs.Handover) {
	s.t.Helper()
	w, err := New(s.cfg, Doors{Queue: s.q, Times: s.times, Clock: s.clock, Log: s.log,
		Steps: attempt.Doors{Queue: s.q, Kin: s.hosts.kin, Dial: s.hosts.connect, Blobs: s.blobs,
			Unseal: s.unseal, Fetch: s.fetch, Trust: s.trust, Committed: s.committed, Answer: s.answer,
			Synchronised: func() error { return s.times.ntp }}})
	if err != nil {
		s.t.Fatal(err)
	}
	report := s.report
	if report == nil {
		report = s.gather
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.t.Cleanup(stop)
	go func() {
		defer close(s.done)
		s.err = w.Run(ctx, h, Master{Orders: s.orders, Report: report})
	}()
}

func (s *stand) gather(r jobs.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, r)
}

// said lists the reports so far.
func (s *stand) said() []jobs.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]jobs.Report{}, s.reports...)
}

// lastSaid returns the latest report.
func (s *stand) lastSaid() jobs.Report {
	s.t.Helper()
	all := s.said()
	if len(all) == 0 {
		s.t.Fatal("the master was told nothing")
	}
	return all[len(all)-1]
}

// wait waits for the end of the worker and returns its error.
func (s *stand) wait() error {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(24 * time.Hour):
		s.t.Fatal("the worker does not come to an end")
	}
	return s.err
}

// finish waits for an orderly end.
func (s *stand) finish() {
	s.t.Helper()
	if err := s.wait(); err != nil {
		s.t.Fatalf("run: %v", err)
	}
	s.hosts.mu.Lock()
	defer s.hosts.mu.Unlock()
	if s.hosts.open != 0 {
		s.t.Errorf("%d connections are left open", s.hosts.open)
	}
	if bye := s.lastSaid(); !bye.Bye || bye.Error != "" || len(bye.Jobs) != 0 {
		s.t.Errorf("last report = %+v, want an orderly bye", bye)
	}
}

func host(i int) string { return fmt.Sprintf("fw%03d", i) }

// inWords returns a result on one line, without its texts.
func inWords(r jobs.Result, goOn bool) string {
	if goOn {
		return "go on"
	}
	words := []string{string(r.Kind)}
	for _, w := range []string{string(r.Outcome), string(r.Class)} {
		if w != "" {
			words = append(words, w)
		}
	}
	if r.Delay > 0 {
		words = append(words, r.Delay.String())
	}
	if r.KeepLock {
		words = append(words, "keep")
	}
	return strings.Join(words, " ")
}
