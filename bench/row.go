package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A row is one figure of the table: the median of its samples.
type row struct {
	Figure  string  `json:"figure"`
	Unit    string  `json:"unit"`
	Median  float64 `json:"median"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	Samples int     `json:"samples"`

	Ratio  float64 `json:"ratio,omitempty"` // of the medians, to Peer
	Peer   string  `json:"peer,omitempty"`
	Target string  `json:"target,omitempty"`
	Result string  `json:"result,omitempty"` // met or missed
}

// The results of a target.
const (
	met    = "met"
	missed = "missed"
)

func newRow(figure, unit string, samples []float64) row {
	s := slices.Sorted(slices.Values(samples))
	return row{Figure: figure, Unit: unit, Median: median(s), Lowest: s[0], Highest: s[len(s)-1],
		Samples: len(s)}
}

// median of a sorted list.
func median(s []float64) float64 {
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}

// to compares with another row.
func (r row) to(name string, peer row) row {
	if peer.Median != 0 {
		r.Ratio, r.Peer = r.Median/peer.Median, name
	}
	return r
}

// atMost sets the target of the figure itself.
func (r row) atMost(bound float64) row {
	return r.judge(fmt.Sprintf("≤ %s", number(bound)), printed(r.Median) <= bound)
}

// atLeast sets the target of the figure itself.
func (r row) atLeast(bound float64) row {
	return r.judge(fmt.Sprintf("≥ %s", number(bound)), printed(r.Median) >= bound)
}

// ratioAtLeast sets the target of the ratio.
func (r row) ratioAtLeast(bound float64) row {
	return r.judge(fmt.Sprintf("≥ %s × %s", number(bound), r.Peer), printed(r.Ratio) >= bound)
}

// ratioAtMost sets the target of the ratio.
func (r row) ratioAtMost(bound float64) row {
	return r.judge(fmt.Sprintf("≤ %s ×", number(bound)), printed(r.Ratio) <= bound)
}

func (r row) judge(target string, ok bool) row {
	r.Target, r.Result = target, missed
	if ok {
		r.Result = met
	}
	return r
}

// number prints what a person needs of a figure: three digits of small ones.
func number(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1000:
		return thousands(int64(math.Round(x)))
	case a >= 100 || x == math.Trunc(x):
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// printed is a figure as the table shows it: by that it is judged, so that the
// table does not contradict itself.
func printed(x float64) float64 {
	switch a := math.Abs(x); {
	case a >= 100:
		return math.Round(x)
	case a >= 10:
		return math.Round(x*10) / 10
	}
	return math.Round(x*100) / 100
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
