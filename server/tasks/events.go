package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/server/web"
)

const (
	streamsMax  = 64 // open at once; each looks at every zone twice a second
	streamPoll  = 500 * time.Millisecond
	streamPage  = 100              // entries read at once; one may tell of 500 jobs
	streamPages = 20               // read in a row, also if nobody wants what is in them
	streamBurst = 1 << 20          // bytes after which is written, before more is read
	streamRetry = 2 * time.Second  // until a Redis that did not answer is asked again
	heartbeat   = 15 * time.Second // so that proxies and clients see that we live
	streamWrite = 10 * time.Second // a client that does not read for so long is left
	resumeMax   = 8 << 10          // bytes of a Last-Event-ID
)

type eventsInput struct {
	Task string `query:"task" doc:"only events of this task and its jobs"`
	Last string `header:"Last-Event-ID" doc:"id of the last event that the caller has got"`
}

// Streams lets clients follow what happens.
type Streams struct {
	Reads Reads
	Zones Listing
	Until web.Waiter
	Now   func() time.Time

	Rights Rights
	// Near returns the zones of the hosts that a view shows.
	Near func(v *web.View) map[string]bool

	count atomic.Int64 // open now
}

// events answers with the events of all zones, as Server-Sent Events. The id of an event has the
// place in each zone, so that a client which returns with it misses nothing that Redis still has.
func (s *Streams) events(_ context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	var wrong []error
	if in.Task != "" {
		_, err := jobs.ParseTaskID(in.Task)
		wrong = web.Mistakes("query.task", err)
	}
	at, err := parsePositions(in.Last)
	if wrong = append(wrong, web.Mistakes("header.Last-Event-ID", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	return s.open(func(ctx context.Context, st *stream) error {
		st.at, st.task = at, in.Task
		return s.serve(ctx, st)
	})
}

// open answers with the text that f writes, or refuses if too many streams are open already.
func (s *Streams) open(f func(ctx context.Context, st *stream) error) (
	*huma.StreamResponse, error) {
	if s.count.Add(1) > streamsMax {
		s.count.Add(-1)
		return nil, web.Away(fmt.Sprintf("%d streams of events are open, more are not served",
			streamsMax))
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer s.count.Add(-1)
		_, w := humago.Unwrap(ctx)
		// The gate ends the context if the caller loses the right. An error means that the client has
		// gone.
		_ = f(ctx.Context(), &stream{w: w, rc: http.NewResponseController(w)})
	}}, nil
}

// A Listing names the zones.
type Listing interface {
	Zones(ctx context.Context) ([]string, error)
}

// Open returns the number of streams that are open now.
func (s *Streams) Open() int64 { return s.count.Load() }

// positions has for each zone the place up to which it was read.
type positions map[string]string

var entryID = regexp.MustCompile(`^[0-9]{1,20}(-[0-9]{1,20})?$`)

// parsePositions reads the id of an event; nil if there is none.
func parsePositions(text string) (positions, error) {
	if text == "" {
		return nil, nil
	}
	bad := fmt.Errorf("%q: want the id of an event, such as default=1763720000000-0", web.Clip(text))
	if len(text) > resumeMax {
		return nil, bad
	}
	at := positions{}
	for pair := range strings.SplitSeq(text, ",") {
		zone, id, _ := strings.Cut(pair, "=")
		if fleet.CheckName(zone) != nil || !entryID.MatchString(id) {
			return nil, bad
		}
		at[zone] = id
	}
	return at, nil
}

// timeOf returns the time at which Redis made an entry of the events.
func timeOf(id string) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

// String returns the id of an event.
func (p positions) String() string {
	var parts []string
	for _, zone := range slices.Sorted(maps.Keys(p)) {
		parts = append(parts, zone+"="+p[zone])
	}
	return strings.Join(parts, ",")
}

// A stream is one client that listens.
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	at   positions // nil: from now on
	task string    // empty: everything
	part limited

	behind bool // the last look did not come to the end

	spoke  time.Time // when something was last written
	broken error     // why nothing can be written any more
}

// serve writes the events to a client until the client or the server goes. Its only errors are
// those of writing.
func (s *Streams) serve(ctx context.Context, st *stream) error {
	if err := st.open(); err != nil {
		return err
	}
	spoke := s.Now()
	for {
		happened, err := s.news(ctx, st)
		words := happened
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			// The client learns why it hears nothing, and need not connect again.
			words = append(words, comment("trouble: "+troubleFor(ctx, err))...)
		case len(words) == 0 && s.Now().Sub(spoke) >= heartbeat:
			words = comment("alive")
		}
		if len(words) > 0 {
			if err := st.write(words); err != nil {
				return err
			}
			spoke = s.Now()
		}
		next := streamPoll
		switch {
		case err != nil:
			next = streamRetry
		case st.behind:
			next = 0
		}
		if !s.Until.Pause(ctx, next) {
			return nil
		}
	}
}

// news reads the events of all zones since the last look. The events that it returns beside an
// error are true, and it does not read them again.
func (s *Streams) news(ctx context.Context, st *stream) ([]byte, error) {
	zones, err := s.Zones.Zones(ctx)
	if err != nil {
		return nil, err
	}
	zones = s.near(ctx, st, append(zones, keys.HubZone))
	fresh := st.at == nil
	if fresh {
		st.at = positions{}
	}
	st.behind = false
	var b bytes.Buffer
	for _, zone := range zones {
		if fresh {
			st.at[zone] = "$"
		}
		if err := s.newsOf(ctx, zone, st, &b); err != nil {
			if fresh {
				st.at = nil // no place was told yet
			}
			return b.Bytes(), err
		}
	}
	return b.Bytes(), nil
}

// newsOf reads the events of one zone. A zone that is younger than the stream has no place yet, and
// is read from its beginning.
func (s *Streams) newsOf(ctx context.Context, zone string, st *stream, b *bytes.Buffer) error {
	for range streamPages {
		list, last, err := s.Reads.Events.Events(ctx, zone, st.at[zone], streamPage, 0)
		if err != nil {
			return err
		}
		sees := s.sees(ctx)
		for i, h := range list {
			seen, err := sees(h)
			if err != nil {
				return err
			}
			// Only the last event of an entry says that the entry was read: a client that
			// returns with an earlier one gets the entry again.
			if i+1 == len(list) || list[i+1].ID != h.ID {
				st.at[zone] = h.ID
			}
			if seen {
				st.tell(b, h)
			}
		}
		st.at[zone] = last
		if len(list) < streamPage {
			return nil
		}
		if b.Len() > streamBurst {
			break
		}
	}
	st.behind = true
	return nil
}

// tell writes one event, if the client wants it.
func (st *stream) tell(b *bytes.Buffer, h jobs.Happening) {
	if st.task != "" && h.Object != st.task && !strings.HasPrefix(h.Object, st.task+":") {
		return
	}
	st.part.tell(st.at, h)
	data, err := json.Marshal(h)
	if err != nil {
		return // its detail came out of JSON, so it goes in again
	}
	fmt.Fprintf(b, "id: %s\nevent: %s\ndata: %s\n\n", st.place(), h.Event, data)
}

// comment returns a line that clients ignore.
func comment(text string) []byte {
	return []byte(": " + strings.Join(strings.Fields(text), " ") + "\n\n")
}

// open sends the head of the answer, and lifts the bounds of an ordinary one.
func (st *stream) open() error {
	h := st.w.Header()
	h.Set("Content-Type", web.EventStream)
	h.Set("X-Accel-Buffering", "no")
	if err := st.rc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	st.w.WriteHeader(http.StatusOK)
	return st.write(comment("muster"))
}

// write bounds each write by itself. No bound may stay behind: HTTP/2 would end the stream at that
// time, even if nothing is written.
func (st *stream) write(text []byte) error {
	if err := st.rc.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil {
		return err
	}
	if _, err := st.w.Write(text); err != nil {
		return err
	}
	if err := st.rc.Flush(); err != nil {
		return err
	}
	return st.rc.SetWriteDeadline(time.Time{})
}
