package election

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/jobs/queue/hub"
)

// shared is the lease of one duty for several candidates.
type shared struct {
	mu    sync.Mutex
	lease lease
}

func (s *shared) Lead(_ context.Context, _, _ string, held int64) (hub.Term, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.lead(proc.Boot(), held), nil
}

func (s *shared) Leave(_ context.Context, _ string, held int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.number == held {
		s.lease.number = 0
	}
	return nil
}

// A server that stops ends its work first, and then gives the duty back: another server has it
// with the next request, and before the lease has ended.
func TestADutyPassesToAnotherServerWhenItsOwnStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		votes := &shared{}
		var mu sync.Mutex
		var events []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, what)
		}
		stand := func(name string) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			c := Candidate{Votes: votes, Who: func() string { return name }, Log: hclog.NewNullLogger()}
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.Stand(ctx, Duty{Name: "x", Work: func(ctx context.Context, term *Term) error {
					note(name + " begins")
					if !term.Trusted() || term.Number() == 0 {
						t.Errorf("%s begins in term %d, trusted: %t", name, term.Number(), term.Trusted())
					}
					<-ctx.Done()
					time.Sleep(2 * renewEvery) // the second server asks for the duty meanwhile
					note(name + " ends")
					return nil
				}})
			}()
			synctest.Wait()
			return func() { cancel(); <-done }
		}
		stopFirst := stand("first")
		stopSecond := stand("second")
		stopFirst()
		time.Sleep(renewEvery)
		synctest.Wait()
		stopSecond()
		want := []string{"first begins", "first ends", "second begins", "second ends"}
		if !slices.Equal(events, want) {
			t.Errorf("it went %v, want %v", events, want)
		}
		if votes.lease.last != 2 || votes.lease.number != 0 {
			t.Errorf("after two terms the lease is %+v", votes.lease)
		}
	})
}
