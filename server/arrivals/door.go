package arrivals

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/events"
	"muster/ingress"
	"muster/jobs/queue/inbox"
	"muster/server/web"
)

// path is the beginning of the routes of sources; the name of a source follows.
const path = "/v1/ingress/"

// Refused is the reason by which refused messages are counted.
const Refused = "event_signature"

const (
	// bodyTime bounds the time in which a sender sends a body.
	bodyTime = 10 * time.Second
	// placeWait bounds the time in which a sender waits for a place.
	placeWait = 2 * time.Second
	// atOnce bounds the bodies in memory: strangers send them, too.
	atOnce = 64
	// ofOne bounds those from one address, so that a slow one leaves places for others. A proxy in
	// front of the server is one address.
	ofOne = 32
)

// A Door takes what sources send. Its callers prove by a signature who they are, and by nothing
// else.
type Door struct {
	Needs
	Keeper *Keeper
	// Refused counts and logs a request that proves nobody.
	Refused func(r *http.Request, reason string)
	Durable string // how far Redis can be trusted to remember what was accepted
	Log     hclog.Logger
	Now     func() time.Time

	places chan struct{}
	guests *guests
	mux    *http.ServeMux
}

// Open returns a door that is ready.
func (d Door) Open() *Door {
	d.places, d.mux = make(chan struct{}, atOnce), http.NewServeMux()
	d.guests = &guests{by: map[string]int{}}
	d.mux.HandleFunc("POST "+path+"{source}", d.take)
	return &d
}

// Has reports whether a request is one for this door.
func (d *Door) Has(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, path) }

// ServeHTTP answers a request.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	d.mux.ServeHTTP(w, r)
}

// take answers POST /v1/ingress/{source}.
func (d *Door) take(w http.ResponseWriter, r *http.Request) {
	id, seq, err := d.accept(w, r)
	if err != nil {
		web.WriteProblem(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	// A sender that does not read its answer has gone; it may send the same again.
	_ = json.NewEncoder(w).Encode(api.EventTaken{Event: id, Seq: seq, Durable: d.Durable})
}

// accept verifies and stores a message.
func (d *Door) accept(w http.ResponseWriter, r *http.Request) (id string, seq int64, err error) {
	leave, err := d.enter(r)
	if err != nil {
		return "", 0, err
	}
	defer leave()
	body, err := d.body(w, r)
	if err != nil {
		return "", 0, err
	}
	at := d.Now()
	source, delivery, err := d.verify(r, ingress.Message{Header: r.Header.Values, Body: body, At: at})
	if err != nil {
		return "", 0, err
	}
	return d.store(r, inbox.Arrival{Event: events.Event{ID: delivery.ID, Source: source.Name,
		Kind: delivery.Kind, Customer: delivery.Customer, At: at, Body: body}, Class: source.Class,
		Bounds: source.Bounds})
}

// enter takes a place for a message until it is stored or refused. Senders who are slow may take
// all of them: the others hear soon that they must come again. One address never has all of them.
func (d *Door) enter(r *http.Request) (leave func(), err error) {
	from := addressOf(r.RemoteAddr)
	if !d.guests.enter(from) {
		return nil, web.Away("too many messages arrive from this address at the moment: send it again")
	}
	wait := time.NewTimer(placeWait)
	defer wait.Stop()
	select {
	case d.places <- struct{}{}:
		return func() {
			<-d.places
			d.guests.leave(from)
		}, nil
	case <-wait.C:
		err = web.Away("too many messages arrive at the moment: send it again")
	case <-r.Context().Done():
		err = web.Problem(r.Context().Err())
	}
	d.guests.leave(from)
	return nil, err
}

// body reads a body within its bounds.
func (d *Door) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "" {
		return nil, huma.Error415UnsupportedMediaType("send the body as it was signed, without a " +
			"Content-Encoding")
	}
	large := huma.NewError(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d "+
		"bytes", ingress.BodyMax))
	if r.ContentLength > ingress.BodyMax {
		return nil, large
	}
	// Where a deadline cannot be set, that of the server holds.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, ingress.BodyMax))
	if tooMany := (*http.MaxBytesError)(nil); errors.As(err, &tooMany) {
		return nil, large
	}
	if err != nil {
		return nil, huma.Error400BadRequest("the body did not arrive whole")
	}
	return body, nil
}

// errUnproven is the whole answer to who proves nothing.
var errUnproven = huma.Error401Unauthorized("not accepted")

// verify returns the source of a message. A stranger learns nothing: not even which sources there
// are.
func (d *Door) verify(r *http.Request, m ingress.Message) (ingress.Source, ingress.Delivery,
	error) {
	sources := d.Keeper.Sources()
	if sources == nil && d.Keeper.Complaint() != "" {
		return ingress.Source{}, ingress.Delivery{}, web.Away("this cannot be verified at the moment: " +
			"send it again")
	}
	s, known := sources.Find(r.PathValue("source"))
	if !known || d.Inbox == nil || s.Program != nil {
		return s, ingress.Delivery{}, d.refuse(r, ingress.Unknown)
	}
	secrets, err := d.Secrets(s)
	if err != nil {
		d.Log.Error("events of a source cannot be verified", "source", s.Name, "error", err)
	}
	delivery, err := s.Accept(m, secrets)
	var no *ingress.Refusal
	if !errors.As(err, &no) {
		return s, delivery, err
	}
	switch no.Why {
	case ingress.Unsecured:
		return s, delivery, web.Away("this cannot be verified at the moment: send it again")
	case ingress.NotJSON, ingress.NoName, ingress.NoKind:
		d.Log.Warn("a source sends what is no event", "source", s.Name, "why", no.Why)
		return s, delivery, huma.Error422UnprocessableEntity(no.Words)
	}
	return s, delivery, d.refuse(r, no.Why)
}

func (d *Door) refuse(r *http.Request, why ingress.Why) error {
	d.Refused(r, Refused)
	d.Log.Debug("a message is no event", "why", why)
	return errUnproven
}

// store stores an event before its sender has an answer.
func (d *Door) store(r *http.Request, a inbox.Arrival) (string, int64, error) {
	taken, err := d.Inbox.Take(r.Context(), a)
	var flood *inbox.Flood
	switch {
	case errors.As(err, &flood):
		if flood.Tell {
			d.Log.Error("a flood of events: those beyond the bounds of the source are refused and "+
				"counted", "source", a.Source, "why", flood.Error(), "per_minute", a.Bounds.PerMinute,
				"waiting", a.Bounds.Waiting)
		}
		seconds := max(1, int((flood.Wait+time.Second-1)/time.Second))
		return "", 0, huma.ErrorWithHeaders(huma.Error429TooManyRequests(flood.Error()+": send it "+
			"again later"), http.Header{"Retry-After": {strconv.Itoa(seconds)}})
	case err != nil:
		return "", 0, web.Problem(err)
	}
	return a.ID, taken.Seq, nil
}
