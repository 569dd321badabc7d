package promtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"muster/testkit/porttest"
)

// Alertmanager is a server of a test that sends what it is told to one webhook.
type Alertmanager struct{ url string }

// The pauses of Alertmanager are as short as it takes them: tests wait little.
const alertConfig = `
route: {receiver: muster, group_by: [alertname, host], group_wait: 50ms, group_interval: 200ms,
  repeat_interval: 1h}
receivers:
  - name: muster
    webhook_configs:
      - {url: '%s', send_resolved: true, http_config: {authorization: {credentials_file: '%s'}}}
`

// StartAlertmanager starts an Alertmanager that sends to a URL, with a token.
func StartAlertmanager(t testing.TB, webhook, token string) *Alertmanager {
	t.Helper()
	dir, addr := t.TempDir(), porttest.Addr(t)
	secret, file := filepath.Join(dir, "token"), filepath.Join(dir, "alertmanager.yml")
	for path, text := range map[string]string{secret: token,
		file: fmt.Sprintf(alertConfig, webhook, secret)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(find(t, "prometheus-alertmanager"), "--config.file="+file,
		"--web.listen-address="+addr, "--storage.path="+filepath.Join(dir, "data"),
		"--cluster.listen-address=", "--log.level=warn")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	a := &Alertmanager{url: "http://" + addr}
	for tick, from := time.Tick(20*time.Millisecond), time.Now(); a.get("/-/ready", nil) != nil; <-tick {
		if time.Since(from) > time.Minute {
			t.Fatal("alertmanager is not ready after a minute")
		}
	}
	return a
}

// URL returns the address of its API.
func (a *Alertmanager) URL() string { return a.url }

// Alert tells it of an alert with some labels, as Prometheus does; end is zero while the alert
// lasts.
func (a *Alertmanager) Alert(labels map[string]string, end time.Time) error {
	one := map[string]any{"labels": labels, "annotations": map[string]string{"summary": "of a test"},
		"startsAt": time.Now().Add(-time.Minute), "generatorURL": "http://prometheus.example.org/"}
	if !end.IsZero() {
		one["endsAt"] = end
	}
	body, err := json.Marshal([]any{one})
	if err != nil {
		return err
	}
	res, err := http.Post(a.url+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("alertmanager: %s", res.Status)
	}
	return nil
}

// An Alert is one that Alertmanager has.
type Alert struct {
	Labels map[string]string `json:"labels"`
	EndsAt time.Time         `json:"endsAt"`
}

// Alerts returns the alerts that last.
func (a *Alertmanager) Alerts() (list []Alert, err error) {
	err = a.get("/api/v2/alerts", &list)
	return list, err
}

func (a *Alertmanager) get(path string, out any) error {
	res, err := http.Get(a.url + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, res.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(out)
}
