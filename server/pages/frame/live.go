package frame

import (
	"cmp"
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
	livesMax  = 400              // open at once on a server
	writeMost = 10 * time.Second // a browser that does not read for so long is left
)

// lives are the streams that are open.
type lives struct {
	open   atomic.Int64
	places *places
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
	s := &stream{eye: eyeOf(p, w, look), w: w, rc: http.NewResponseController(w), seen: seenOf(has),
		asks: r, proven: time.Now(), opened: time.Now(), whole: wholeLooks{came: make(chan sight, 1)}}
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
	see := eyeOf(p, w, look).now
	if r.URL.Query().Has("again") { // the browser asks each few seconds
		see = eyeOf(p, w, look).lately
	}
	got := see(r.Context())
	if got.err != nil {
		web.WriteProblem(w, huma.NewError(ProblemOf(got.err).Status, got.err.Error()))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// A browser that does not read its answer has gone.
	_ = json.NewEncoder(w).Encode(got.parts)
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
