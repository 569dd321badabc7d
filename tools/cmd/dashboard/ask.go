package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A series is one line of a panel.
type series struct {
	name   string
	points []point
}

type point struct {
	at    time.Time
	value float64
}

// last returns the newest value.
func (s series) last() float64 { return s.points[len(s.points)-1].value }

// An asker asks Prometheus for the series of a time.
type asker struct {
	url      string
	from, to time.Time
	step     time.Duration
	words    *strings.Replacer // of Grafana
}

var client = http.Client{Timeout: 30 * time.Second}

// series evaluates an expression of a panel, over the whole time or as it is at its end.
func (a asker) series(expr, legend string, now bool) ([]series, error) {
	from := a.from
	if now {
		from = a.to
	}
	ask := url.Values{"query": {a.words.Replace(expr)}, "start": {stamp(from)}, "end": {stamp(a.to)},
		"step": {strconv.FormatFloat(a.step.Seconds(), 'f', 3, 64)}}
	res, err := client.Get(a.url + "/api/v1/query_range?" + ask.Encode())
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var said struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&said); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", expr, res.Status, err)
	}
	if said.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expr, said.Error)
	}
	var all []series
	for _, r := range said.Data.Result {
		s := series{name: nameOf(legend, r.Metric)}
		for _, v := range r.Values {
			at, isTime := v[0].(float64)
			text, _ := v[1].(string)
			n, err := strconv.ParseFloat(text, 64)
			if !isTime || err != nil {
				return nil, fmt.Errorf("%s: no sample: %v", expr, v)
			}
			if n-n == 0 { // neither NaN nor infinite: a quantile of nothing is drawn as a gap
				s.points = append(s.points, point{time.UnixMilli(int64(at * 1000)), n})
			}
		}
		if len(s.points) > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

var placeholder = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// nameOf fills the labels of a series into the words of a legend.
func nameOf(legend string, labels map[string]string) string {
	return placeholder.ReplaceAllStringFunc(legend, func(s string) string {
		return labels[placeholder.FindStringSubmatch(s)[1]]
	})
}
