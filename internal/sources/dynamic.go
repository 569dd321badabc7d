package sources

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"muster/internal/files"
	"muster/internal/proc"
)

// tokenMax bounds a file with a token.
const tokenMax = 64 << 10 // bytes

// callTimeout bounds a program and a call.
const callTimeout = time.Minute

// run asks a program for the inventory. Its environment is clean: what it needs to
// know stands in files.
func run(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout,
		fmt.Errorf("did not end within %s", callTimeout))
	defer cancel()
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return proc.Output(ctx, proc.Program{Path: abs, Args: []string{"--list"}, Dir: filepath.Dir(abs),
		Env: cleanEnv(), Most: fileMax})
}

func cleanEnv() []string {
	return []string{"LANG=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// tokenKey is the key in a URL that names the file of its token.
const tokenKey = "token"

// target is a URL and the file with the token for it.
type target struct {
	url       string
	tokenFile string
}

// parseURL reads https://host/path#token=/path/of/file.
func parseURL(name string) (target, error) {
	u, err := url.Parse(name)
	if err != nil {
		return target{}, fmt.Errorf("inventory %s: %w", title(name), err)
	}
	bad := func(format string, args ...any) (target, error) {
		return target{}, fmt.Errorf("inventory %s: %s", title(name), fmt.Sprintf(format, args...))
	}
	t := target{}
	if u.Fragment != "" {
		file, ok := strings.CutPrefix(u.Fragment, tokenKey+"=")
		if !ok || !filepath.IsAbs(file) {
			return bad("behind '#' want token=/path/of/a/file with the token in it")
		}
		t.tokenFile = file
	}
	ip := net.ParseIP(u.Hostname())
	switch {
	case u.User != nil:
		return target{}, fmt.Errorf("inventory %s: it has a user or password, which lists show: "+
			"put a token into a file, and its path behind '#token='", u.Redacted())
	case u.Host == "":
		return bad("it names no host")
	case u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()):
		return bad("an inventory says which hosts are trusted, so it comes over https only")
	}
	u.Fragment = ""
	t.url = u.String()
	return t, nil
}

// fetch asks a URL for the inventory.
func fetch(ctx context.Context, name string) ([]byte, error) {
	t, err := parseURL(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json, application/yaml;q=0.9, */*;q=0.5")
	if t.tokenFile != "" {
		token, err := files.Read(t.tokenFile, tokenMax)
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport,
		CheckRedirect: func(to *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it sends on to %s: list that URL instead", to.URL.Redacted())
		}}
	answer, err := client.Do(r)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) { // which repeats the URL
			err = wrapped.Err
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("did not answer within %s", callTimeout)
		}
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, fileMax+1))
	switch {
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("answers %s: want 200 OK", answer.Status)
	case err != nil:
		return nil, err
	case len(data) > fileMax:
		return nil, fmt.Errorf("answers with more than %d bytes", fileMax)
	}
	return data, nil
}
