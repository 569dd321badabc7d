// Command dashboard draws the dashboard for Grafana from a real Prometheus as one SVG: each panel
// shows what Prometheus answers to its expressions, so that a panel without data is seen.
//
//	go run -C tools ./cmd/dashboard -prometheus http://127.0.0.1:9090 -for 15m -out /tmp/board.svg
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// A board is the part of a dashboard that is drawn.
type board struct {
	Title  string
	Panels []panel
}

type panel struct {
	Title   string
	Type    string
	GridPos struct{ X, Y, W, H int }
	Targets []struct {
		Expr         string
		LegendFormat string
		Instant      bool // as it is now
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
}

func main() {
	c := config{}
	flag.StringVar(&c.prometheus, "prometheus", "http://127.0.0.1:9090", "`URL` of the Prometheus to ask")
	flag.StringVar(&c.file, "file", "../etc/monitoring/muster.dashboard.json", "`file` of the dashboard")
	flag.DurationVar(&c.length, "for", 15*time.Minute, "`time` to draw, up to now")
	flag.DurationVar(&c.rate, "rate", time.Minute, "`time` over which rates are counted ($__rate_interval)")
	flag.StringVar(&c.out, "out", "", "`file` for the picture, an SVG; required")
	flag.Parse()
	if err := c.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

type config struct {
	prometheus, file, out string
	length, rate          time.Duration
}

// run draws, and names the panels that are empty.
func (c config) run(says *os.File) error {
	if c.out == "" || flag.NArg() > 0 {
		return errors.New("want -out FILE, and no arguments")
	}
	text, err := os.ReadFile(c.file)
	if err != nil {
		return err
	}
	var b board
	if err := json.Unmarshal(text, &b); err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	if len(b.Panels) == 0 {
		return fmt.Errorf("%s has no panels: want the JSON of a dashboard", c.file)
	}
	to := time.Now()
	ask := asker{url: c.prometheus, from: to.Add(-c.length), to: to, step: max(c.length/150, time.Second),
		words: strings.NewReplacer("$__rate_interval", c.rate.String(), "$zone", ".*")}
	d := newDrawing(b, ask.from, ask.to)
	for _, p := range b.Panels {
		var all []series
		for _, t := range p.Targets {
			list, err := ask.series(t.Expr, t.LegendFormat, t.Instant)
			if err != nil {
				return fmt.Errorf("panel %q: %w", p.Title, err)
			}
			all = append(all, list...)
		}
		if len(all) == 0 {
			fmt.Fprintf(says, "panel %q shows nothing\n", p.Title)
		}
		d.panel(p, all)
	}
	return os.WriteFile(c.out, d.end(), 0o644)
}
