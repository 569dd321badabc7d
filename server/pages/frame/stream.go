package frame

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/server/web"
)

const (
	glancePause  = 500 * time.Millisecond // between two looks at what is quickly known, at least
	livePause    = time.Second            // between two looks at a page, at least
	liveRate     = 27 << 10               // bytes a second to a browser, but for the first whole page
	heartbeat    = 10 * time.Second       // the browser calls a page stale after two that are missing
	troublePause = 2 * time.Second        // after a look that failed
	proveEvery   = 30 * time.Second       // until a stream asks again who listens
	glanceMost   = heartbeat              // between two looks of a stream itself, at most
	wholeMost    = time.Minute            // between two looks at a whole page beside it, at most

	// liveShare bounds the looks of all streams together: while the pauses above allow it, those of
	// the streams themselves take at most 1/20 of a processor, and those beside them another 1/20.
	liveShare = 20
)

// A stream keeps one open page up to date. It looks often at the parts that are quickly known,
// while a look at the whole page, which may take long, goes on beside it.
type stream struct {
	eye
	w      http.ResponseWriter
	rc     *http.ResponseController
	asks   *http.Request // of the stream
	seen   seen
	spoke  time.Time
	proven time.Time // when it was last certain who listens
	opened time.Time

	quick map[string]bool // the parts that are quickly known
	next  time.Time       // of a look by the stream itself
	paid  time.Time       // all that was sent fits into the rate then
	whole wholeLooks

	trouble string // why the last look failed; empty: it did not
	told    string // the trouble that the browser shows
}

// WholeLooks are the looks at the whole page that go on beside a stream, one at a time.
type wholeLooks struct {
	turn   string    // of the page at the last look of the stream itself
	turned time.Time // the turn had changed by then
	due    time.Time // of the next look
	under  bool      // one is under way
	came   chan sight
	wait   sync.WaitGroup

	trouble string // why the last one failed; empty: it did not
}

// run sends what changes until the browser, the server or the session goes.
func (s *stream) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer s.whole.wait.Wait()
	defer stop()
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if err := s.say("retry: 3000\n\n"); err != nil {
		return err
	}
	for timer := time.NewTimer(0); ; timer.Reset(s.rest()) {
		select {
		case <-timer.C:
		case got := <-s.whole.came:
			if err := s.tookWhole(got); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		case <-s.pages.needs.Stopping:
			return nil
		}
		if time.Since(s.proven) >= proveEvery && !s.prove() {
			return s.say(event("over", "", "your session has ended"))
		}
		if err := s.turnTo(ctx); err != nil {
			return err
		}
	}
}

// rest returns how long the stream has nothing to do.
func (s *stream) rest() time.Duration {
	left := min(time.Until(s.next), time.Until(s.spoke.Add(heartbeat)))
	if s.mayLookWhole() {
		left = min(left, max(time.Until(s.whole.due), time.Until(s.paid)))
	}
	return left
}

// mayLookWhole reports whether a look at the whole page may go on beside the stream.
func (s *stream) mayLookWhole() bool { return len(s.quick) > 0 && !s.whole.under }

// turnTo looks at the page if it is time to, and sends a sign of life after a long silence.
func (s *stream) turnTo(ctx context.Context) error {
	if now := time.Now(); s.mayLookWhole() && !now.Before(s.whole.due) && !now.Before(s.paid) {
		s.whole.under = true
		s.lookWhole(ctx)
	}
	if now := time.Now(); !now.Before(s.next) {
		since := now.Add(-glancePause)
		if since.Before(s.opened) {
			since = s.opened // the page has what happened before
		}
		got := s.at(web.WithSince(ctx, since), true)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.trouble = words(got.err)
		sent, err := s.send(got.parts)
		if err != nil {
			return err
		}
		s.plan(got, sent)
	}
	if time.Since(s.spoke) >= heartbeat {
		return s.say(s.sign())
	}
	return nil
}

// plan decides when to look again, after a look of the stream itself that sent so many bytes.
func (s *stream) plan(got sight, sent int) {
	least := livePause
	if got.light && got.err == nil {
		least = glancePause
		s.known(got)
	}
	s.next = time.Now().Add(max(s.pause(got, least, glanceMost), atRate(sent)))
}

// known keeps which parts are quickly known, and whether all of the page has changed.
func (s *stream) known(got sight) {
	if s.quick == nil {
		s.quick = map[string]bool{}
	}
	for _, one := range got.parts {
		s.quick[one.ID] = true
	}
	if b := &s.whole; b.turned.IsZero() || got.turn != b.turn {
		b.turn, b.turned, b.due = got.turn, time.Now(), time.Time{}
	}
}

// pause returns how long a stream waits after a look, within bounds: so long that the looks of all
// streams together leave most of a processor to others. The cost of a failed look says nothing.
func (s *stream) pause(got sight, least, most time.Duration) time.Duration {
	if got.err != nil {
		return troublePause
	}
	fair := got.took * liveShare * time.Duration(max(1, s.pages.lives.open.Load()))
	return min(most, max(least, fair))
}

// atRate returns the time that so many bytes take.
func atRate(n int) time.Duration { return time.Second * time.Duration(n) / liveRate }

// lookWhole looks at the whole page while the stream goes on.
func (s *stream) lookWhole(ctx context.Context) {
	e, since := s.eye, s.whole.turned
	if since.Before(s.opened) {
		since = s.opened
	}
	s.whole.wait.Go(func() {
		leave := s.pages.lives.places.take(ctx, e.who.Name)
		if leave == nil {
			return
		}
		defer leave()
		s.whole.came <- e.safely(web.WithSince(ctx, since))
	})
}

// tookWhole sends the news of a look at the whole page, without the parts that are quickly known:
// the browser has newer ones.
func (s *stream) tookWhole(got sight) error {
	if got.panic != "" {
		// The browser comes back later than at once. An error means that it has gone.
		_ = s.say("retry: 60000\n" + event("trouble", "", "a mistake in muster: no page"))
		panic(got.panic) // in the request to which it belongs
	}
	b := &s.whole
	b.under, b.trouble = false, words(got.err)
	wait := s.pause(got, livePause, wholeMost)
	if got.err == nil && got.turn != b.turn { // it has changed since, or before the quick parts tell
		wait = livePause
	}
	_, err := s.send(slices.DeleteFunc(got.parts, func(one piece) bool { return s.quick[one.ID] }))
	b.due = time.Now().Add(wait)
	return err
}

// prove finds the caller of the stream again, with the rights of now. It reports whether the stream
// may go on: not if the caller is another one or unknown. If nobody can say that at this moment, it
// goes on with what was known, and asks again soon; the policy is asked at each look.
func (s *stream) prove() bool {
	who, err := s.pages.needs.Identify(s.asks)
	x, known := s.w.(*web.Exchange)
	var answer huma.StatusError
	switch {
	case !known:
		return false
	case err == nil && who.Name != x.Who.Name:
		return false
	case err == nil:
		x.Who, s.who, s.proven = who, who, time.Now()
		return true
	case errors.As(err, &answer) && answer.GetStatus() < http.StatusInternalServerError:
		return false
	}
	s.proven = time.Now().Add(troublePause - proveEvery)
	return x.Who.Until.IsZero() || time.Now().Before(x.Who.Until)
}

// words returns those of an error; empty: there is none.
func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// sign returns what a stream says that has nothing to send: that it lives, or still has trouble.
func (s *stream) sign() string {
	if s.told = cmp.Or(s.trouble, s.whole.trouble); s.told != "" {
		return event("trouble", "", s.told)
	}
	return event("alive", "", nil)
}

// send sends the parts that have changed, and trouble: each event takes that from the page. It
// returns the bytes that it sent.
func (s *stream) send(parts []piece) (int, error) {
	var b strings.Builder
	for _, one := range parts {
		if s.seen[one.ID] != one.Hash {
			s.seen[one.ID] = one.Hash
			if one.Hold {
				one.HTML = "" // the browser asks for it once somebody wants it
			}
			b.WriteString(event("part", s.seen.String(), one))
		}
	}
	trouble := cmp.Or(s.trouble, s.whole.trouble)
	if trouble != s.told || b.Len() > 0 && trouble != "" {
		b.WriteString(s.sign())
	}
	if b.Len() == 0 {
		return 0, nil
	}
	if now := time.Now(); s.paid.Before(now) {
		s.paid = now
	}
	s.paid = s.paid.Add(atRate(b.Len()))
	return b.Len(), s.say(b.String())
}
