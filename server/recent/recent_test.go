package recent

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/access"
	"muster/fleet"
	"muster/server/web"
)

// A desk answers the question for the nodes by counting, and knows an admin and a guest.
type desk struct {
	http.Handler
	answers *Answers

	mu     sync.Mutex
	now    time.Time
	calls  int
	on     func(call int) error // called in each answer; nil: nothing
	rights *access.Rights
	sight  *web.Sight // of the last caller
}

type said struct{ Body string }

func newDesk(t *testing.T) *desk {
	t.Helper()
	p, err := access.Parse(fleet.Source{Name: "access.yaml", Data: []byte("who:\n" +
		"  - {principal: user:admin, roles: [admin]}\n" +
		"  - {principal: user:other, roles: [admin]}\n" +
		"  - {principal: user:guest, grants: [{verbs: [see], hosts: customer=acme}]}\n")})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	d := &desk{Handler: mux, now: time.Unix(1000, 0)}
	d.answers = New(d.clock)
	c := huma.DefaultConfig("muster", "1")
	c.CreateHooks = nil
	api := humago.New(mux, c)
	d.rights = p.Over(&fleet.Inventory{})
	api.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) {
		v := web.NewView(d.rights, access.Who{Principal: ctx.Header("From")})
		ctx, sight := web.WithView(ctx, v)
		d.mu.Lock()
		d.sight = sight
		d.mu.Unlock()
		next(ctx)
	}, d.answers.Middleware)
	for _, path := range []string{"/v1/nodes", "/v1/whoami"} {
		huma.Get(api, path, func(_ context.Context, in *struct {
			Mine string `query:"mine"`
		}) (*said, error) {
			d.mu.Lock()
			d.calls++
			n, on := d.calls, d.on
			d.mu.Unlock()
			if on != nil {
				if err := on(n); err != nil {
					return nil, err
				}
			}
			return &said{fmt.Sprint("answer ", n)}, nil
		})
	}
	return d
}

func (d *desk) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *desk) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

// ask asks as somebody for an answer that was begun since an instant; zero: any question that an
// open page did not ask.
func (d *desk) ask(who, path string, since time.Time) string {
	return d.askIn(context.Background(), who, path, since)
}

func (d *desk) askIn(ctx context.Context, who, path string, since time.Time) string {
	r := httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx)
	r.Header.Set("From", who)
	if !since.IsZero() {
		r = r.WithContext(web.WithSince(r.Context(), since))
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return fmt.Sprint(w.Code)
	}
	if kind := w.Header().Get("Content-Type"); kind != "application/json" {
		return "of type " + kind
	}
	return strings.Trim(w.Body.String(), "\"\n")
}

func TestAnAnswerIsShared(t *testing.T) {
	t.Parallel()
	const nodes = "/v1/nodes"
	d := newDesk(t)
	begin := d.now
	for i, step := range []struct {
		after     time.Duration
		who, path string
		since     time.Time
		want      string
	}{
		{0, "user:admin", nodes, begin, "answer 1"},
		{0, "user:admin", nodes, begin, "answer 1"},
		{0, "user:other", nodes, begin, "answer 1"},
		{0, "user:admin", nodes, time.Time{}, "answer 2"},                // not a page: always made now
		{0, "user:admin", nodes + "?mine=true", begin, "answer 3"},       // about its caller
		{0, "user:other", nodes + "?mine=true", begin, "answer 4"},       // so it is not kept
		{0, "user:other", nodes + "?mine=false", begin, "answer 5"},      // whatever it says
		{0, "user:admin", "/v1/whoami", begin, "answer 6"},               // a path that is not shared
		{0, "user:other", "/v1/whoami", begin, "answer 7"},               //
		{0, "user:guest", nodes, begin, "answer 8"},                      // sees a part, so nothing is shared
		{0, "user:guest", nodes, begin, "answer 9"},                      //
		{0, "user:admin", nodes, begin, "answer 1"},                      // and nothing of it was kept
		{0, "user:nobody", nodes, begin, "answer 10"},                    //
		{least - 1, "user:admin", nodes, begin, "answer 1"},              //
		{0, "user:admin", nodes, begin.Add(1), "answer 11"},              // that one was begun before
		{least, "user:admin", nodes, begin, "answer 12"},                 // and this one is over
		{0, "user:admin", nodes + "?mine", begin, "answer 13"},           //
		{0, "user:admin", nodes, begin.Add(2 * least), "answer 14"},      // the clock stands before it
		{0, "user:admin", nodes, begin.Add(2*least - 1), "answer 14"},    //
		{0, "user:admin", nodes, begin.Add(2*least - 100), "answer 14"},  //
		{10 * least, "user:admin", nodes, begin.Add(least), "answer 15"}, //
	} {
		d.pass(step.after)
		if got := d.ask(step.who, step.path, step.since); got != step.want {
			t.Errorf("step %d: %s asks for %s: %s, want %s", i, step.who, step.path, got, step.want)
		}
	}
}

// An answer that took long is kept for longer, so that its making takes a small part of the time.
func TestADearAnswerIsKeptForLonger(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	begin := d.now
	d.on = func(int) error { d.pass(time.Second); return nil }
	d.ask("user:admin", "/v1/nodes", begin)
	d.pass(share*time.Second - 1)
	if got := d.ask("user:other", "/v1/nodes", begin); got != "answer 1" {
		t.Errorf("before its end: %s", got)
	}
	d.pass(1)
	if got := d.ask("user:other", "/v1/nodes", begin); got != "answer 2" {
		t.Errorf("after its end: %s", got)
	}
}

func TestARefusalIsNotShared(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.on = func(call int) error {
		if call == 1 {
			return huma.Error503ServiceUnavailable("away")
		}
		return nil
	}
	for i, want := range []string{"503", "answer 2", "answer 2"} {
		if got := d.ask("user:admin", "/v1/nodes", d.now); got != want {
			t.Errorf("question %d: %s, want %s", i, got, want)
		}
	}
}

// Callers who ask at the same time wait for one answer, also for a refusal; whoever may not have it
// gets the next one.
func TestManyAskAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refused, goes bool          // the first caller
		later         time.Duration // the others want one that was begun so much later
		want          string        // of the others
	}{
		"all share one":                   {false, false, 0, "answer 1"},
		"the first one is too old":        {false, false, time.Minute, "answer 2"},
		"the first caller is refused":     {true, false, 0, "503"},
		"the first caller goes away":      {true, true, 0, "answer 2"},
		"the first caller goes with luck": {false, true, 0, "answer 2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				begin, goOn := d.now, make(chan struct{})
				d.on = func(call int) error {
					if call > 1 {
						return nil
					}
					<-goOn
					if c.refused {
						return huma.Error503ServiceUnavailable("away")
					}
					return nil
				}
				ctx, stop := context.WithCancel(t.Context())
				go d.askIn(ctx, "user:admin", "/v1/nodes", begin)
				synctest.Wait()
				d.pass(c.later)
				var all sync.WaitGroup
				for range 20 {
					all.Go(func() {
						if got := d.ask("user:other", "/v1/nodes", begin.Add(c.later)); got != c.want {
							t.Errorf("a caller got %s, want %s", got, c.want)
						}
					})
				}
				synctest.Wait()
				if c.goes {
					stop()
				}
				close(goOn)
				all.Wait()
				stop()
			})
		})
	}
}

// All answers together have a bound, and an answer that is over, or will be next, makes room.
func TestAnswersHaveABound(t *testing.T) {
	t.Parallel()
	a := New(time.Now)
	now := time.Now()
	for i, step := range []struct {
		key   string
		size  int
		until time.Duration
		want  string // keys that are kept then
	}{
		{"a", most / 2, time.Hour, "a"},
		{"b", most, 9 * time.Hour, "a"}, // too big for all answers
		{"c", most / 4, 2 * time.Hour, "a c"},
		{"d", most / 2, time.Minute, "a c"}, // would be over first
		{"d", most / 2, 3 * time.Hour, "c d"},
		{"c", 1, 0, "c d"}, // in place of the old one
		{"e", 1, time.Hour, "d e"},
		{strings.Repeat("k", most/2), 0, 4 * time.Hour, "kkk"},
	} {
		a.keep(step.key, &answer{begun: now, until: now.Add(step.until), body: make([]byte, step.size)}, now)
		size := 0
		var keys []string
		for key, n := range a.kept {
			size += sizeOf(key, n)
			keys = append(keys, key[:min(3, len(key))])
		}
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != step.want || size != a.size || size > most {
			t.Errorf("step %d: kept are %s of %d bytes (%d are counted), want %s", i, got, size, a.size, step.want)
		}
	}
}

// A caller that waits for the answer of another one goes when its own question ends, and gets an answer
// of its own once it sees less.
func TestAWaitingCallerIsHeldAgainstItsOwnRights(t *testing.T) {
	t.Parallel()
	for name, less := range map[string]bool{"goes": false, "sees less": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				begin, goOn := d.now, make(chan struct{})
				d.on = func(call int) error {
					if call == 1 {
						<-goOn
					}
					return nil
				}
				go d.ask("user:admin", "/v1/nodes", begin)
				synctest.Wait()
				ctx, stop := context.WithCancel(t.Context())
				got := make(chan string, 1)
				go func() { got <- d.askIn(ctx, "user:other", "/v1/nodes", begin) }()
				synctest.Wait()
				end := sync.OnceFunc(func() { close(goOn) })
				if less {
					d.sight.Store(web.NewView(d.rights, access.Who{Principal: "user:guest"}))
					end()
				} else {
					stop()
				}
				if answer := <-got; answer != "answer 2" { // though the first caller may still wait
					t.Errorf("the caller got %s, want an answer of its own", answer)
				}
				end()
				stop()
			})
		})
	}
}

// A panic of one caller is no answer for others.
func TestAPanicIsNotShared(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.on = func(call int) error {
		if call == 1 {
			panic("a mistake")
		}
		return nil
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller")
			}
		}()
		d.ask("user:admin", "/v1/nodes", d.now)
	}()
	if got := d.ask("user:other", "/v1/nodes", d.now); got != "answer 2" {
		t.Errorf("then: %s", got)
	}
}
