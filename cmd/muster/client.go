package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"muster/api"
	"muster/internal/settings"
	"muster/jobs"
)

// The bounds of a request.
const (
	dialTimeout   = 10 * time.Second
	callTimeout   = 30 * time.Second
	submitTimeout = 2 * time.Minute // a submit of 100,000 jobs to a slow Redis
	answerMax     = 64 << 20        // bytes; the longest are summaries and outputs
	pageMax       = 500             // jobs of a page, as many as a server gives
)

// client calls the API of a server. Its errors are *awayError where no server
// answers and *refusal where one says no.
type client struct {
	address
	http     *http.Client
	token    string // empty: none
	as       string // operator that was asked for; empty: whom the server knows
	files    filesRead
	patience patience
}

// patience is how something is tried again that may work later.
type patience struct {
	first, most time.Duration // between two tries
	whole       time.Duration // in all
}

var defaultPatience = patience{first: 300 * time.Millisecond, most: 5 * time.Second,
	whole: 2 * time.Minute}

// newClient makes a client. Nothing is called yet. Without a server it finds that of this
// machine.
func newClient(server, token string) (*client, error) {
	return newClientAt(settings.Sockets(), server, token)
}

// newClientAt is newClient with the paths to look at.
func newClientAt(sockets []string, server, token string) (*client, error) {
	a, err := address{place: "the unix socket of this machine", base: "http://localhost",
		socket: sockets[0]}, error(nil)
	if server != "" {
		a, err = parseAddress(server)
	}
	if err != nil {
		return nil, err
	}
	if err := a.checkToken(token); err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     time.Minute,
		// More than a server takes to look: only a proxy that passes nothing on is waited for.
		ExpectContinueTimeout: dialTimeout,
	}
	if a.socket != "" {
		dial := func(ctx context.Context) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", a.socket)
		}
		if server == "" {
			dial = newLookup(sockets, dialer).dial
		}
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx)
		}
	}
	return &client{address: a, token: token, patience: defaultPatience, http: &http.Client{
		Transport: transport,
		// A token follows no signpost.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// submit hands in a task.
func (c *client) submit(ctx context.Context, b api.Submit, note backoff.Notify) (
	api.Submitted, error) {
	id := jobs.TaskID(b.ID)
	if b.DryRun {
		id = ""
	}
	return handIn[api.Submitted](ctx, c, id, call{method: http.MethodPost, path: "/v1/tasks",
		body: b, bound: submitTimeout}, note)
}

// handIn makes a call that makes a task. The task's id makes it the same task
// however often it is said, so what may have been heard is said again until there
// is an answer. If there is none the error is an *unsureError. Without an id
// nothing is made.
func handIn[T any](ctx context.Context, c *client, id jobs.TaskID, q call, note backoff.Notify) (
	T, error) {
	heard := false
	out, err := again(ctx, c.patience, func() (out T, err error) {
		err = c.do(ctx, q, &out)
		var away *awayError
		if errors.As(err, &away) {
			heard = heard || away.heard
		}
		if err != nil && !heard {
			err = backoff.Permanent(err)
		}
		return out, err
	}, note)
	if err != nil && heard && passing(err) && id != "" {
		return out, &unsureError{id, err}
	}
	return out, err
}

// task tells about a task. With a wait it answers later, when not seen jobs but
// others have ended, the task has ended or the wait is over.
func (c *client) task(ctx context.Context, id jobs.TaskID, wait time.Duration, seen int) (
	t jobs.TaskInfo, err error) {
	q := url.Values{}
	if wait > 0 {
		q.Set("wait", strconv.Itoa(int(wait/time.Second)))
		q.Set("seen", strconv.Itoa(seen))
	}
	err = c.do(ctx, call{method: http.MethodGet, path: "/v1/tasks/" + url.PathEscape(string(id)),
		query: q, bound: wait + callTimeout}, &t)
	return t, err
}

// jobs gives all jobs of a task, page by page, in the order of its host list.
// Empty states and outcomes are all.
func (c *client) jobs(ctx context.Context, id jobs.TaskID, s jobs.State, o jobs.Outcome) (
	[]jobs.JobInfo, error) {
	all, q := []jobs.JobInfo{}, url.Values{"limit": {strconv.Itoa(pageMax)}}
	if s != "" {
		q.Set("state", string(s))
	}
	if o != "" {
		q.Set("outcome", string(o))
	}
	for {
		var page api.JobList
		if err := c.get(ctx, "/v1/tasks/"+url.PathEscape(string(id))+"/jobs", q, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Jobs...)
		if page.Next == "" {
			return all, nil
		}
		if len(page.Jobs) == 0 || page.Next == q.Get("cursor") {
			return nil, c.nonsense("its list of jobs has no end")
		}
		q.Set("cursor", page.Next)
	}
}

// heard is what a host said from a place on.
type heard struct {
	data  []byte // byte for byte
	next  int64  // where to go on
	ended bool   // nothing more will come
}

// output is what a host said from a place on. With a wait it answers later, when
// there is more, or nothing more will come, or the wait is over.
func (c *client) output(ctx context.Context, id jobs.ID, from int64, wait time.Duration) (
	h heard, err error) {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	q := url.Values{}
	if from > 0 {
		q.Set("from", strconv.FormatInt(from, 10))
	}
	if wait > 0 {
		q.Set("wait", strconv.Itoa(int(wait/time.Second)))
	}
	r, err := c.send(ctx, call{method: http.MethodGet, bound: submitTimeout, query: q,
		path: "/v1/jobs/" + url.PathEscape(string(id)) + "/output"})
	if err != nil {
		return h, err
	}
	defer r.Body.Close()
	h.data, err = c.readAll(r.Body)
	if h.next, _ = strconv.ParseInt(r.Header.Get(api.HeaderNext), 10, 64); h.next < from {
		h.next = from + int64(len(h.data))
	}
	h.ended = r.Header.Get(api.HeaderEnded) != "false"
	return h, err
}

// get asks for one thing.
func (c *client) get(ctx context.Context, path string, q url.Values, answer any) error {
	return c.do(ctx, call{method: http.MethodGet, path: path, query: q, bound: callTimeout}, answer)
}

// call is one request.
type call struct {
	method, path string
	query        url.Values
	body         any           // sent as JSON; nil: none
	content      io.Reader     // sent as it is, instead
	size         int64         // bytes of content
	bound        time.Duration // on everything, up to the last byte of the answer
	last         string        // of events: go on behind this one
}

// do sends a request and reads the answer, unless that is nil.
func (c *client) do(ctx context.Context, q call, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, q.bound)
	defer cancel()
	r, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := c.readAll(r.Body)
	if err != nil || answer == nil {
		return err
	}
	if t := mediaType(r); t != "application/json" {
		return c.nonsense(fmt.Sprintf("it answers with %q, not with JSON", t))
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return c.nonsense("its answer cannot be read: " + err.Error())
	}
	return nil
}

// send sends a request and returns an answer of status 2xx, whose body the
// caller closes.
func (c *client) send(ctx context.Context, q call) (*http.Response, error) {
	r, err := c.exchange(ctx, q)
	if err != nil || r.StatusCode/100 == 2 {
		return r, err
	}
	defer r.Body.Close()
	return nil, c.refused(r)
}

// exchange sends a request and returns the answer, whose body the caller closes.
func (c *client) exchange(ctx context.Context, q call) (*http.Response, error) {
	var body io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	var connected atomic.Bool
	// A connection that died while it was idle is replaced before a byte was sent.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, q.method, c.base+q.path, body)
	if err != nil {
		return nil, err
	}
	if q.content != nil {
		r.Body, r.ContentLength = io.NopCloser(q.content), q.size
		if q.size == 0 {
			r.Body = http.NoBody
		}
	}
	r.URL.RawQuery = q.query.Encode()
	c.sign(r.Header, q)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, &awayError{place: c.place, err: c.plain(err, q.bound), heard: connected.Load()}
	}
	return answer, nil
}

// sign says who asks.
func (c *client) sign(h http.Header, q call) {
	h.Set("User-Agent", "muster/"+version)
	if q.body != nil {
		h.Set("Content-Type", "application/json")
	}
	if q.content != nil {
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Expect", "100-continue") // what is there already is not sent
	}
	if q.last != "" {
		h.Set("Last-Event-ID", q.last)
	}
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	if c.as != "" {
		h.Set(api.UserHeader, c.as)
	}
}

func (c *client) readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, answerMax+1))
	switch {
	case err != nil:
		err = fmt.Errorf("its answer was cut off: %w", err)
		return nil, &awayError{place: c.place, err: err, heard: true}
	case len(text) > answerMax:
		return nil, c.nonsense(fmt.Sprintf("its answer has more than %d MiB", answerMax>>20))
	}
	return text, nil
}

func mediaType(r *http.Response) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return r.Header.Get("Content-Type")
	}
	return t
}

// plain takes from an error what people know already: the method and the URL.
func (c *client) plain(err error, bound time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", span(bound))
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return errors.New("it does not speak TLS: try http://")
	}
	return err
}
