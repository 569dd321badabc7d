package anchor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"muster/internal/files"
)

// webhook posts batches. Its headers are those of https://www.standardwebhooks.com.
type webhook struct{ url, key, ca string }

const (
	keyMin = 16      // bytes
	keyMax = 4 << 10 // bytes
	pemMax = 4 << 20 // bytes
)

func (w *webhook) send(ctx context.Context, b Batch) error {
	key, err := w.readKey()
	if err != nil {
		return err
	}
	client, err := w.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	body := append(bytes.Join(b.Lines, []byte("\n")), '\n')
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/jsonl")
	req.Header.Set("Webhook-Id", b.ID)
	req.Header.Set("Webhook-Timestamp", at)
	req.Header.Set("Webhook-Signature", "v1,"+signature(key, b.ID, at, body))
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	// The rest of the answer is of no use, but lets the connection end in order.
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return nil
}

// signature returns the HMAC of what a webhook gets.
func signature(key []byte, id, at string, body []byte) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%s.%s.", id, at)
	h.Write(body)
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// readKey reads the key each time, so that a changed file is in force at once.
func (w *webhook) readKey() ([]byte, error) {
	data, mode, err := files.Private(w.key, keyMax)
	if err != nil {
		return nil, fmt.Errorf("audit.webhook_key: %w", err)
	}
	if mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("audit.webhook_key: %s has mode %04o, so others can use it: chmod 400 it",
			w.key, mode.Perm())
	}
	key := bytes.TrimSpace(data)
	if len(key) < keyMin {
		return nil, fmt.Errorf("audit.webhook_key: %s has %d bytes: want %d or more", w.key, len(key),
			keyMin)
	}
	return key, nil
}

// errMoved refuses an answer that sends the log elsewhere.
var errMoved = errors.New("it redirects, and the log goes nowhere but where the configuration says")

func (w *webhook) client() (*http.Client, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if w.ca != "" {
		pem, err := files.Read(w.ca, pemMax)
		if err != nil {
			return nil, fmt.Errorf("audit.webhook_ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("audit.webhook_ca: %s has no certificate in PEM", w.ca)
		}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c,
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errMoved }}, nil
}
