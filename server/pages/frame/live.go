package frame

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/server/web"
)

const (
	livesMax   = 400              // open at once on a server
	livePause  = time.Second      // between two looks at least
	liveShare  = 20               // looks take at most 1/20 of the time
	liveRate   = 30 << 10         // bytes a second to one browser
	heartbeat  = 10 * time.Second // the browser calls a page stale after two that are missing
	proveEvery = 30 * time.Second // until a stream asks again who listens
	writeMost  = 10 * time.Second // a browser that does not read for so long is left
)

// lives counts the streams that are open.
type lives struct{ open atomic.Int64 }

// liveKey marks the request by which a stream looks at its page.
type liveKey struct{}

// taken keeps the content of a page for a stream.
type taken struct {
	show  Show
	err   error
	light bool // only what is quickly known is wanted
}

// A seen part is one that the browser has, by its hash.
type seen map[string]string

// live answers with the parts of a page that change, as Server-Sent Events. The id of an event says
// which contents the browser has then, so that one which returns gets only the news.
func (p *Frame) live(w http.ResponseWriter, r *http.Request) {
	if p.lives.open.Add(1) > livesMax {
		p.lives.open.Add(-1)
		web.WriteProblem(w, web.Away(fmt.Sprintf("%d pages are open, more are not kept up to date",
			livesMax)))
		return
	}
	defer p.lives.open.Add(-1)
	look, err := p.looks(r)
	if err != nil {
		web.WriteProblem(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", web.EventStream)
	h.Set("X-Accel-Buffering", "no")
	has := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("seen"))
	s := &stream{w: w, rc: http.NewResponseController(w), seen: seenOf(has), pages: p, asks: r,
		look: look, proven: time.Now()}
	// An error means that the browser has gone.
	_ = s.run(r.Context())
}

// looks returns the request for the page that a stream keeps up to date.
func (p *Frame) looks(r *http.Request) (*http.Request, error) {
	at := r.URL.Query().Get("at")
	look, err := http.NewRequestWithContext(r.Context(), http.MethodGet, at, nil)
	if err != nil || !strings.HasPrefix(at, "/") || look.URL.Host != "" || !p.shows(look) {
		return nil, huma.Error422UnprocessableEntity("want ?at= with the address of a page")
	}
	look.RemoteAddr = r.RemoteAddr
	return look, nil
}

// shows reports whether a request is for a page that shows something.
func (p *Frame) shows(r *http.Request) bool {
	_, pattern := p.mux.Handler(r)
	return p.views[pattern]
}

// once answers with the parts of a page that change, for a browser that has no stream.
func (p *Frame) once(w http.ResponseWriter, r *http.Request) {
	look, err := p.looks(r)
	if err != nil {
		web.WriteProblem(w, err)
		return
	}
	s := &stream{w: w, pages: p, look: look}
	list, err := s.parts(r.Context())
	if err != nil {
		web.WriteProblem(w, huma.NewError(ProblemOf(err).Status, err.Error()))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// A browser that does not read its answer has gone.
	_ = json.NewEncoder(w).Encode(list)
}

// A piece is a part of a page as a browser gets it.
type piece struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
	Hash string `json:"hash"`
	Hold bool   `json:"hold,omitempty"`
}

// parts looks at the page and returns the parts of it that change.
func (s *stream) parts(ctx context.Context) ([]piece, error) {
	begun := time.Now()
	to := taken{light: s.light && begun.Before(s.whole)}
	x := &web.Exchange{ResponseWriter: &Reply{Head: http.Header{}}}
	if mine, ok := s.w.(*web.Exchange); ok {
		x.Who, x.Again = mine.Who, mine.Again
	}
	s.pages.mux.ServeHTTP(x, s.look.WithContext(context.WithValue(ctx, liveKey{}, &to)))
	if to.err != nil {
		return nil, to.err
	}
	if to.light && to.show.Turn != s.turn {
		s.whole = time.Time{} // the next look is at all of it
	}
	if !to.light {
		s.turn = to.show.Turn
		s.light, s.whole = to.show.Light, time.Now().Add(liveShare*time.Since(begun))
	}
	list := []piece{}
	for _, one := range to.show.Parts {
		if !one.Live {
			continue
		}
		var html bytes.Buffer
		if err := one.Body.Render(ctx, &html); err != nil {
			return nil, err
		}
		list = append(list, piece{one.ID, html.String(), hashOf(html.Bytes()), one.Hold})
	}
	return list, nil
}

// A stream keeps one open page up to date.
type stream struct {
	pages  *Frame
	w      http.ResponseWriter
	rc     *http.ResponseController
	asks   *http.Request // of the stream
	look   *http.Request // of its page
	seen   seen
	spoke  time.Time
	proven time.Time // when it was last certain who listens

	light bool      // the page knows what of it is quickly known
	whole time.Time // before then only that is asked for
	turn  string    // of the last look at the whole page
}

// run sends what changes until the browser, the server or the session goes.
func (s *stream) run(ctx context.Context) error {
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if err := s.say("retry: 3000\n\n"); err != nil {
		return err
	}
	for {
		begun := time.Now()
		if time.Since(s.proven) >= proveEvery {
			if !s.prove() {
				return s.say(event("over", "", "your session has ended"))
			}
			s.proven = begun
		}
		n, err := s.news(ctx)
		if err != nil {
			return err
		}
		wait := max(livePause, time.Second*time.Duration(n)/liveRate)
		if !s.light {
			wait = max(wait, liveShare*time.Since(begun))
		}
		t := time.NewTimer(min(wait, heartbeat))
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-s.pages.needs.Stopping:
			t.Stop()
			return nil
		}
		t.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// prove finds the caller of the stream again, with the rights of now. It reports whether the caller
// is still the same.
func (s *stream) prove() bool {
	who, err := s.pages.needs.Identify(s.asks)
	x, known := s.w.(*web.Exchange)
	if err != nil || !known || who.Name != x.Who.Name {
		return false
	}
	x.Who = who
	return true
}

// news looks at the page and sends the parts that have changed. It returns the bytes that it sent.
func (s *stream) news(ctx context.Context) (int, error) {
	var b strings.Builder
	list, err := s.parts(ctx)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil {
		b.WriteString(event("trouble", "", err.Error()))
	}
	for _, one := range list {
		if s.seen[one.ID] != one.Hash {
			s.seen[one.ID] = one.Hash
			if one.Hold {
				one.HTML = "" // the browser asks for it once somebody wants it
			}
			b.WriteString(event("part", s.seen.String(), one))
		}
	}
	if b.Len() == 0 {
		if time.Since(s.spoke) < heartbeat-livePause {
			return 0, nil
		}
		b.WriteString(event("alive", "", nil))
	}
	return b.Len(), s.say(b.String())
}

// hashOf returns a short hash of a part.
func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// event returns an event of a stream. Its data is JSON, so it has one line.
func event(name, id string, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "" // texts and numbers are always JSON
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return id + "event: " + name + "\ndata: " + string(data) + "\n\n"
}

// seenMax bounds the id with which a browser returns.
const seenMax = 1 << 10 // bytes

// seenOf reads the id of an event. A mistake in it only makes the browser get more.
func seenOf(id string) seen {
	s := seen{}
	if len(id) > seenMax {
		return s
	}
	for pair := range strings.SplitSeq(id, ",") {
		if name, hash, ok := strings.Cut(pair, "="); ok {
			s[name] = hash
		}
	}
	return s
}

// String returns the id of an event.
func (s seen) String() string {
	var parts []string
	for _, name := range Sorted(s) {
		parts = append(parts, name+"="+s[name])
	}
	return strings.Join(parts, ",")
}

// say writes a text, and leaves a browser that does not take it in time.
func (s *stream) say(text string) error {
	s.spoke = time.Now()
	if err := s.rc.SetWriteDeadline(s.spoke.Add(writeMost)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	if err := s.rc.Flush(); err != nil {
		return err
	}
	return s.rc.SetWriteDeadline(time.Time{})
}
