// Package promtest gives tests a Prometheus that scrapes some addresses, an Alertmanager, and
// promtool.
package promtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/testkit/porttest"
)

// Tool runs promtool in a folder; a test without it fails.
func Tool(t testing.TB, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(find(t, "promtool"), args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func find(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(program + " is missing: run `tools/install.sh prometheus`, as `make test` does")
	}
	return path
}

// Prometheus is a server of a test.
type Prometheus struct {
	url    string
	client http.Client
}

const config = `
global: {scrape_interval: %dms, scrape_timeout: %[1]dms}
scrape_configs:
  - job_name: muster
    static_configs: [{targets: ['%s']}]
`

// often is the time between two scrapes: tests wait little.
const often = 300 * time.Millisecond

// Start starts a Prometheus that scrapes host:port as the job muster.
func Start(t testing.TB, target string) *Prometheus {
	t.Helper()
	return StartEvery(t, often, target)
}

// StartEvery starts a Prometheus that scrapes each host:port as the job muster, with a time between
// two scrapes.
func StartEvery(t testing.TB, every time.Duration, targets ...string) *Prometheus {
	t.Helper()
	dir, addr := t.TempDir(), porttest.Addr(t)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, every.Milliseconds(),
		strings.Join(targets, "', '")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(find(t, "prometheus"), "--config.file="+file, "--web.listen-address="+addr,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--log.level=warn")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	p := &Prometheus{url: "http://" + addr,
		client: http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}}
	for tick, from := time.Tick(20*time.Millisecond), time.Now(); !p.ready(); <-tick {
		if time.Since(from) > time.Minute {
			t.Fatal("prometheus is not ready after a minute")
		}
	}
	return p
}

// URL returns the address of its API.
func (p *Prometheus) URL() string { return p.url }

func (p *Prometheus) ready() bool {
	res, err := p.client.Get(p.url + "/-/ready")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// Query evaluates an expression now, and returns the number of series of its answer.
func (p *Prometheus) Query(expr string) (series int, err error) {
	var a struct{ Data struct{ Result []any } }
	err = p.ask("/api/v1/query?query="+url.QueryEscape(expr), &a)
	return len(a.Data.Result), err
}

// Names lists the names of all series.
func (p *Prometheus) Names() ([]string, error) {
	var a struct{ Data []string }
	err := p.ask("/api/v1/label/__name__/values", &a)
	return a.Data, err
}

func (p *Prometheus) ask(path string, out any) error {
	res, err := p.client.Get(p.url + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var said struct{ Error string }
		_ = json.NewDecoder(res.Body).Decode(&said)
		return fmt.Errorf("%s: %s", res.Status, said.Error)
	}
	return json.NewDecoder(res.Body).Decode(out)
}
