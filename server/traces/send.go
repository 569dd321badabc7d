package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"muster/internal/wording"
	"muster/server/spans"
)

const (
	answerMax = 64 << 10 // bytes
	// afterMax bounds the pause that a collector can ask for.
	afterMax = 5 * time.Minute
)

// A reply says how a request ended.
type reply struct {
	err   error         // nil: the collector has it
	again bool          // the same may work later
	after time.Duration // the collector asks for a pause so long

	rejected int64 // spans that it refused, although it has the others
	words    string
}

// A sender sends spans to a collector.
type sender struct {
	client  *http.Client
	url     string
	place   string // host and port, for people
	headers func() (http.Header, error)
	version string
	name    func() string
}

func newSender(n Needs) (sender, error) {
	u, err := n.Config.target()
	if err != nil {
		return sender{}, err
	}
	client, err := n.Config.client()
	if n.Name == nil {
		n.Name = func() string { return "" }
	}
	return sender{client, u.String(), u.Host, n.Config.Headers, n.Version, n.Name}, err
}

func (s sender) close() { s.client.CloseIdleConnections() }

// Probe sends a request without a span, to see whether the collector takes requests.
func Probe(ctx context.Context, c Config, version string) error {
	s, err := newSender(Needs{Config: c, Version: version})
	if err != nil {
		return err
	}
	defer s.close()
	return s.send(ctx, nil).err
}

// send sends spans once. No error repeats the URL or a header.
func (s sender) send(ctx context.Context, list []spans.Span) reply {
	body, err := encode(list, resource{s.version, s.name()})
	if err != nil {
		return reply{err: fmt.Errorf("the spans cannot be encoded: %w", err)}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	// A buffer takes everything.
	_, _ = z.Write(body)
	_ = z.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, &packed)
	if err != nil {
		return reply{err: errors.New("the URL cannot be used")}
	}
	if s.headers != nil {
		if req.Header, err = s.headers(); err != nil {
			return reply{err: err, again: true} // a changed file is in force at once
		}
		req.Header = req.Header.Clone()
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "muster/"+s.version)
	res, err := s.client.Do(req)
	if err != nil {
		return reply{err: fmt.Errorf("%s: %w", s.place, plain(err)), again: !errors.Is(err, errMoved)}
	}
	defer res.Body.Close()
	// An answer that breaks off is judged by its status.
	answer, _ := io.ReadAll(io.LimitReader(res.Body, answerMax))
	return s.judge(res, answer)
}

// judge reads an answer. Which statuses are worth another try says the specification of OTLP.
func (s sender) judge(res *http.Response, answer []byte) reply {
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		r := reply{}
		r.rejected, r.words = partly(res.Header.Get("Content-Type"), answer)
		r.words = wording.OneLine(r.words, 300)
		return r
	}
	r := reply{err: fmt.Errorf("%s answers %s", s.place, wording.OneLine(res.Status, 100))}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		r.again, r.after = true, afterOf(res.Header.Get("Retry-After"), time.Now())
	}
	return r
}

// afterOf returns the pause that an answer asks for, in seconds or until an instant.
func afterOf(text string, now time.Time) time.Duration {
	var d time.Duration
	if n, err := strconv.Atoi(text); err == nil {
		d = time.Duration(min(max(n, 0), int(afterMax/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), afterMax)
}

// plain takes the URL out of an error of HTTP.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		if u.Timeout() {
			return errors.New("it did not answer in time")
		}
		return plain(u.Err)
	}
	return errors.New(wording.OneLine(err.Error(), 300))
}
