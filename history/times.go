package history

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"muster/api"
	"muster/jobs"
)

// spentBy sums up what the time of jobs went to, use by use in their order.
func spentBy(list []api.PastJob) []api.Spent {
	out := []api.Spent{}
	for _, u := range jobs.Uses() {
		var all []time.Duration
		for _, j := range list {
			if d := j.Times.Of(u); d > 0 {
				all = append(all, d)
			}
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		var sum time.Duration
		for _, d := range all {
			sum += d
		}
		out = append(out, api.Spent{Use: u, Jobs: len(all), Sum: sum.Seconds(), P50: rank(all,
			0.5).Seconds(),
			P90: rank(all, 0.9).Seconds(), Max: all[len(all)-1].Seconds()})
	}
	return out
}

// rank is the smallest of sorted durations that so large a part of them does not exceed.
func rank(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return list[int(math.Ceil(q*float64(len(list))))-1]
}

// timesText is how times are stored.
func timesText(t jobs.Times) string {
	if len(t) == 0 {
		return ""
	}
	text, _ := json.Marshal(t) // of texts and numbers only
	return string(text)
}

func readTimes(text string) (t jobs.Times, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &t)
	}
	return t, err
}
