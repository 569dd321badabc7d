package history

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"muster/api"
	"muster/jobs"
)

// spentBy sums up how jobs spent their time, use by use in order.
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

// rank returns a quantile of sorted durations: the smallest one that is not less than a part q of
// them.
func rank(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return list[int(math.Ceil(q*float64(len(list))))-1]
}

// timesText returns the stored form of times.
func timesText(t jobs.Times) string {
	if len(t) == 0 {
		return ""
	}
	text, _ := json.Marshal(t) // only texts and numbers: no error is possible
	return string(text)
}

func readTimes(text string) (t jobs.Times, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &t)
	}
	return t, err
}
