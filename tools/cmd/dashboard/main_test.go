package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A panel with series shows them, one without says so, a value that is over does not stand in a
// panel of instants, and an error of Prometheus is told with its expression.
func TestABoardIsDrawn(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("query") == "bad" {
			w.WriteHeader(http.StatusBadRequest)
			w.Write([]byte(`{"status": "error", "error": "parse error"}`))
			return
		}
		var result []any
		if q.Get("query") == "rate(x[1m0s])" || q.Get("query") == "now" && q.Get("start") == q.Get("end") {
			now := float64(time.Now().Unix())
			result = append(result, map[string]any{"metric": map[string]string{"zone": "<b>"},
				"values": [][2]any{{now - 60, "0.5"}, {now - 30, "NaN"}, {now, "2"}}})
		}
		json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"result": result}})
	}))
	defer s.Close()
	dir := t.TempDir()
	draw := func(exprs ...string) (picture, said string, err error) {
		var panels []map[string]any
		for _, e := range exprs {
			kind := "timeseries"
			if e == "now" {
				kind = "stat"
			}
			panels = append(panels, map[string]any{"title": "panel " + e, "type": kind,
				"gridPos": map[string]int{"w": 12, "h": 8},
				"targets": []map[string]any{{"expr": e, "legendFormat": "in {{zone}}", "instant": e == "now"}}})
		}
		text, _ := json.Marshal(map[string]any{"panels": panels})
		c := config{prometheus: s.URL, file: filepath.Join(dir, "board"), out: filepath.Join(dir, "out"),
			length: 5 * time.Minute, rate: time.Minute}
		if err := os.WriteFile(c.file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		says, err := os.Create(filepath.Join(dir, "says"))
		if err != nil {
			t.Fatal(err)
		}
		defer says.Close()
		err = c.run(says)
		a, _ := os.ReadFile(c.out)
		b, _ := os.ReadFile(says.Name())
		return string(a), string(b), err
	}
	picture, said, err := draw("rate(x[$__rate_interval])", "now", "nothing")
	if err != nil || said != "panel \"panel nothing\" shows nothing\n" {
		t.Fatalf("%v: %q", err, said)
	}
	for _, want := range []string{"in &lt;b&gt;  2", ">in &lt;b&gt;<", "No data", "panel nothing", " d=\"M"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture lacks %q:\n%s", want, picture)
		}
	}
	if strings.Count(picture, "No data") != 1 || strings.Contains(picture, "NaN") {
		t.Errorf("the picture shows what is not there:\n%s", picture)
	}
	if _, _, err := draw("bad"); err == nil || !strings.Contains(err.Error(), `panel "panel bad": bad: parse error`) {
		t.Errorf("got %v", err)
	}
	if _, _, err := draw(); err == nil || !strings.Contains(err.Error(), "no panels") {
		t.Errorf("without panels: %v", err)
	}
}
