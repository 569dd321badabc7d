package cli

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
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"muster/api"
	"muster/internal/certs"
	"muster/internal/local"
	"muster/internal/nearby"
	"muster/jobs"
	"muster/jobs/trace"
)

// The bounds of a request.
const (
	dialTimeout   = 10 * time.Second
	CallTimeout   = 30 * time.Second
	SubmitTimeout = 2 * time.Minute // bounds a submit of 100,000 jobs to a slow Redis
	answerMax     = 64 << 20        // bytes; the longest are summaries and outputs
	pageMax       = 500             // jobs of a page, as many as a server gives
)

// Client calls the API of a server. Its errors are *AwayError if no server answers and *Refusal if
// one refuses.
type Client struct {
	address
	HTTP     *http.Client
	token    string // empty: none
	As       string // operator for the demo; empty: the operator that the server knows
	Files    filesRead
	Patience Patience
}

// Patience controls the tries of a call that may succeed later.
type Patience struct {
	First, Most time.Duration // pause between two tries
	Whole       time.Duration // in all
}

var defaultPatience = Patience{First: 300 * time.Millisecond, Most: 5 * time.Second,
	Whole: 2 * time.Minute}

// NewClient makes a client and calls nothing yet. Without an address it finds the server of this
// machine.
func NewClient(server, token string) (*Client, error) {
	return newClientAt(local.Sockets(), server, token)
}

// newClientAt is NewClient with the paths of the sockets.
func newClientAt(sockets []string, server, token string) (*Client, error) {
	a, err := address{Place: "the unix socket of this machine", base: "http://localhost",
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
		// A server decides faster, so this only waits for proxies that do not pass the header on.
		ExpectContinueTimeout: dialTimeout,
	}
	if a.socket != "" {
		dial := func(ctx context.Context) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", a.socket)
		}
		if server == "" {
			dial = nearby.New(sockets, dialer).Dial
		}
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx)
		}
	}
	return &Client{address: a, token: token, Patience: defaultPatience, HTTP: &http.Client{
		Transport: transport,
		// A client with a token follows no redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// UseCertificates has the client show and check certificates. The error has every mistake.
func (c *Client) UseCertificates(of certs.Client) (err error) {
	c.HTTP.Transport.(*http.Transport).TLSClientConfig, err = of.Config(c.base)
	return err
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Submit submits a task.
func (c *Client) Submit(ctx context.Context, b api.Submit, note backoff.Notify) (
	api.Submitted, error) {
	id := jobs.TaskID(b.ID)
	if b.DryRun {
		id = ""
	}
	return HandIn[api.Submitted](ctx, c, id, Call{Method: http.MethodPost, Path: "/v1/tasks",
		Body: b, Bound: SubmitTimeout}, note)
}

// HandIn makes a call that creates a task. The id makes repeated calls the same task, so a call
// that a server may have received is repeated until there is an answer. If there is none the error
// is an *unsureError. A call without an id creates nothing, and is not repeated in this way.
func HandIn[T any](ctx context.Context, c *Client, id jobs.TaskID, q Call, note backoff.Notify) (
	T, error) {
	heard := false
	out, err := Again(ctx, c.Patience, func() (out T, err error) {
		err = c.Do(ctx, q, &out)
		var away *AwayError
		if errors.As(err, &away) {
			heard = heard || away.Heard
		}
		if err != nil && !heard {
			err = backoff.Permanent(err)
		}
		return out, err
	}, note)
	if err != nil && heard && Passing(err) && id != "" {
		return out, &unsureError{id, err}
	}
	return out, err
}

// Task returns a task. With a wait the server answers when the number of ended jobs is not seen,
// when the task has ended, or when the wait is over.
func (c *Client) Task(ctx context.Context, id jobs.TaskID, wait time.Duration, seen int) (
	t jobs.TaskInfo, err error) {
	q := url.Values{}
	if wait > 0 {
		q.Set("wait", strconv.Itoa(int(wait/time.Second)))
		q.Set("seen", strconv.Itoa(seen))
	}
	err = c.Do(ctx, Call{Method: http.MethodGet, Path: "/v1/tasks/" + url.PathEscape(string(id)),
		Query: q, Bound: wait + CallTimeout}, &t)
	return t, err
}

// Jobs returns all jobs of a task, page by page, in the order of its host list. An empty state or
// outcome means all.
func (c *Client) Jobs(ctx context.Context, id jobs.TaskID, s jobs.State, o jobs.Outcome) (
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
		if err := c.Get(ctx, "/v1/tasks/"+url.PathEscape(string(id))+"/jobs", q, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Jobs...)
		if page.Next == "" {
			return all, nil
		}
		if len(page.Jobs) == 0 || page.Next == q.Get("cursor") {
			return nil, c.Nonsense("its list of jobs has no end")
		}
		q.Set("cursor", page.Next)
	}
}

// Heard is the output of a host from a position on.
type Heard struct {
	Data  []byte // byte for byte
	Next  int64  // the position to continue from
	Ended bool   // no more output will follow
}

// Output returns the output of a host from a position on. With a wait the server answers when there
// is more, when no more will follow, or when the wait is over.
func (c *Client) Output(ctx context.Context, id jobs.ID, from int64, wait time.Duration) (
	h Heard, err error) {
	ctx, cancel := context.WithTimeout(ctx, SubmitTimeout)
	defer cancel()
	q := url.Values{}
	if from > 0 {
		q.Set("from", strconv.FormatInt(from, 10))
	}
	if wait > 0 {
		q.Set("wait", strconv.Itoa(int(wait/time.Second)))
	}
	r, err := c.Send(ctx, Call{Method: http.MethodGet, Bound: SubmitTimeout, Query: q,
		Path: "/v1/jobs/" + url.PathEscape(string(id)) + "/output"})
	if err != nil {
		return h, err
	}
	defer r.Body.Close()
	h.Data, err = c.ReadAll(r.Body)
	if h.Next, _ = strconv.ParseInt(r.Header.Get(api.HeaderNext), 10, 64); h.Next < from {
		h.Next = from + int64(len(h.Data))
	}
	h.Ended = r.Header.Get(api.HeaderEnded) != "false"
	return h, err
}

// Get reads one resource.
func (c *Client) Get(ctx context.Context, path string, q url.Values, answer any) error {
	return c.Do(ctx, Call{Method: http.MethodGet, Path: path, Query: q, Bound: CallTimeout}, answer)
}

// Call is one request.
type Call struct {
	Method, Path string
	Query        url.Values
	Body         any           // sent as JSON; nil: none
	Content      io.Reader     // sent as it is, instead
	Size         int64         // bytes of content
	Bound        time.Duration // on everything, up to the last byte of the answer
	Last         string        // for events: continue after this one
}

// Do sends a request and reads the answer, unless that is nil.
func (c *Client) Do(ctx context.Context, q Call, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, q.Bound)
	defer cancel()
	r, err := c.Send(ctx, q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := c.ReadAll(r.Body)
	if err != nil || answer == nil {
		return err
	}
	if t := MediaType(r); t != "application/json" {
		return c.Nonsense(fmt.Sprintf("it answers with %q, not with JSON", t))
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return c.Nonsense("its answer cannot be read: " + err.Error())
	}
	return nil
}

// Send sends a request and returns an answer of status 2xx, whose body the
// caller closes.
func (c *Client) Send(ctx context.Context, q Call) (*http.Response, error) {
	r, err := c.Exchange(ctx, q)
	if err != nil || r.StatusCode/100 == 2 {
		return r, err
	}
	defer r.Body.Close()
	return nil, c.Refused(r)
}

// Exchange sends a request and returns the answer, whose body the caller closes.
func (c *Client) Exchange(ctx context.Context, q Call) (*http.Response, error) {
	var body io.Reader
	if q.Body != nil {
		text, err := json.Marshal(q.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	var connected atomic.Bool
	// A connection that died while it was idle is replaced before the first byte is sent.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, q.Method, c.base+q.Path, body)
	if err != nil {
		return nil, err
	}
	if q.Content != nil {
		r.Body, r.ContentLength = io.NopCloser(q.Content), q.Size
		if q.Size == 0 {
			r.Body = http.NoBody
		}
	}
	r.URL.RawQuery = q.Query.Encode()
	c.sign(r.Header, q)
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return nil, &AwayError{Place: c.Place, Err: c.plain(err, q.Bound), Heard: connected.Load()}
	}
	return answer, nil
}

// sign adds the headers that identify the client.
func (c *Client) sign(h http.Header, q Call) {
	h.Set("User-Agent", "muster/"+Version)
	if caller, err := trace.Parse(os.Getenv("TRACEPARENT")); err == nil {
		h.Set("Traceparent", caller.String())
	}
	if q.Body != nil {
		h.Set("Content-Type", "application/json")
	}
	if q.Content != nil {
		h.Set("Content-Type", "application/octet-stream")
		h.Set("Expect", "100-continue") // a stored content is not sent
	}
	if q.Last != "" {
		h.Set("Last-Event-ID", q.Last)
	}
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	if c.As != "" {
		h.Set(api.UserHeader, c.As)
	}
}

// ReadAll reads the body of an answer, within bounds.
func (c *Client) ReadAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, answerMax+1))
	switch {
	case err != nil:
		err = fmt.Errorf("its answer was cut off: %w", err)
		return nil, &AwayError{Place: c.Place, Err: err, Heard: true}
	case len(text) > answerMax:
		return nil, c.Nonsense(fmt.Sprintf("its answer has more than %d MiB", answerMax>>20))
	}
	return text, nil
}

// MediaType returns the type of an answer without its parameters.
func MediaType(r *http.Response) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return r.Header.Get("Content-Type")
	}
	return t
}

// plain removes the method and the URL from an error, because people know them.
func (c *Client) plain(err error, bound time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", Span(bound))
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
