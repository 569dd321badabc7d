package jobs

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// RolloutAsk describes a rollout as people write it.
type RolloutAsk struct {
	MaxFailed     string `json:"max_failed,omitempty"`     // N or P%: it stops when more have failed
	UnreachableOK bool   `json:"unreachable_ok,omitempty"` // unreachable hosts do not count
	Breaker       string `json:"breaker,omitempty"`        // N/T, as 3/10m: it stops when N fail in T
	Stages
	ChainAsk
}

// Stages describes the waves of a rollout as people write them.
type Stages struct {
	Canary string   `json:"canary,omitempty"` // N hosts first, then the others
	Waves  []string `json:"waves,omitempty"`  // hosts begun with each wave: 1, 10%, 100%
	Soak   string   `json:"soak,omitempty"`   // pause after each wave, such as 5m
	Gate   bool     `json:"gate,omitempty"`   // a person opens each wave after the first
	// Health is a runbook that must succeed on all hosts so far before the next wave.
	Health     string            `json:"health,omitempty"`
	HealthArgs map[string]string `json:"health_args,omitempty"`
}

// A RolloutMistake is one mistake in a RolloutAsk, with its field.
type RolloutMistake struct {
	Field string // name in JSON
	Err   error
}

// The greatest values that may be asked for.
const (
	soakMax   = 30 * 24 * time.Hour
	withinMax = 24 * time.Hour
)

// Resolve computes the numbers of a rollout for a task of so many hosts, or reports all mistakes.
// The caller adds Health, and assigns the hosts to waves: Waves ignores groups.
func (a RolloutAsk) Resolve(total int) (r Rollout, wrong []RolloutMistake) {
	note := func(field string, err error) {
		if err != nil {
			wrong = append(wrong, RolloutMistake{field, err})
		}
	}
	var err error
	r.MaxFailed, err = parseMaxFailed(a.MaxFailed, total)
	note("max_failed", err)
	r.Breaker, err = parseBreaker(a.Breaker, total)
	note("breaker", err)
	r.Waves, err = parseWaves(a.Waves, total)
	note("waves", err)
	if a.Canary != "" && len(a.Waves) == 0 {
		r.Waves, err = parseCanary(a.Canary, total)
		note("canary", err)
	}
	r.Soak, err = parseSoak(a.Soak)
	note("soak", err)
	r.UnreachableOK, r.Gate, r.Health = a.UnreachableOK, a.Gate, a.Health
	a.shape(note)
	return r, wrong
}

// shape reports parts of an ask that exclude each other.
func (a RolloutAsk) shape(note func(field string, err error)) {
	if a.Canary != "" && len(a.Waves) > 0 {
		note("canary", errors.New("there are waves as well: the first of them is the canary, so want "+
			"only one of the two"))
	}
	waves := a.Canary != "" || len(a.Waves) > 0
	noWaves := errors.New("there are no waves: it is about what happens between them")
	between := map[string]bool{"soak": a.Soak != "", "gate": a.Gate, "health": a.Health != ""}
	for _, field := range []string{"soak", "gate", "health"} {
		if between[field] && !waves {
			note(field, noWaves)
		}
	}
	if a.Health == "" && len(a.HealthArgs) > 0 {
		note("health_args", errors.New("there is no health check that they are for"))
	}
	if a.UnreachableOK && a.MaxFailed == "" && a.Breaker == "" && !waves {
		note("unreachable_ok", errors.New("there is no rule that counts failures"))
	}
}

// Check reports the mistakes of an ask that do not depend on the number of its hosts. That number
// is not known before the ticks of a schedule, so the last wave has to be 100%.
func (a RolloutAsk) Check() (wrong []RolloutMistake) {
	note := func(field string, err error) {
		if err != nil {
			wrong = append(wrong, RolloutMistake{field, err})
		}
	}
	_, err := parseMaxFailed(a.MaxFailed, manyHosts)
	note("max_failed", err)
	_, err = parseBreaker(a.Breaker, manyHosts)
	note("breaker", err)
	if a.Canary != "" {
		_, err = parseCanary(a.Canary, manyHosts)
		note("canary", err)
	}
	note("waves", checkWaves(a.Waves))
	_, err = parseSoak(a.Soak)
	note("soak", err)
	a.shape(note)
	return wrong
}

// manyHosts exceeds the hosts of any task.
const manyHosts = math.MaxInt32

// checkWaves checks the waves of a task whose hosts are not known yet.
func checkWaves(texts []string) error {
	var errs []error
	before := map[bool]float64{} // the last number, and the last share
	whole := false
	for _, text := range texts {
		n, share, err := parseShare(strings.TrimSpace(text), 100)
		switch {
		case err != nil:
			errs = append(errs, err)
		case n <= before[share]:
			errs = append(errs, fmt.Errorf("%s: want more than in the waves before", text))
		}
		before[share] = n
		whole = share && n == 100
	}
	if len(errs) == 0 && len(texts) > 0 && !whole {
		errs = append(errs, fmt.Errorf("%s: end with 100%%, or hosts are left out when there are more",
			texts[len(texts)-1]))
	}
	return errors.Join(errs...)
}

// parseMaxFailed reads N or P%, rounded down. An empty text lets any number of jobs fail.
func parseMaxFailed(text string, total int) (*int, error) {
	if text == "" {
		return nil, nil
	}
	n, isShare, err := parseShare(text, total)
	switch {
	case err != nil && text == "0":
		n, err = 0, nil
	case err != nil:
		return nil, err
	}
	most := int(math.Floor(n + 1e-9))
	if most >= total {
		of := fmt.Sprintf("%q", text)
		if isShare {
			of += fmt.Sprintf(" is %d", most)
		}
		return nil, fmt.Errorf("%s of %d hosts: with that it never stops; want less than all", of, total)
	}
	return &most, nil
}

// parseShare reads a number of hosts, or a percentage of all hosts. Both must be greater than 0.
func parseShare(text string, total int) (n float64, percent bool, err error) {
	number, percent := strings.CutSuffix(text, "%")
	if percent {
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || strings.Trim(number, "0123456789.") != "" {
			return 0, true, fmt.Errorf("%q: want a number such as 5, or a share such as 10%%", text)
		}
		if p <= 0 || p > 100 {
			return 0, true, fmt.Errorf("%q: want more than 0%% and at most 100%%", text)
		}
		return p * float64(total) / 100, true, nil
	}
	k, err := strconv.Atoi(number)
	switch {
	case err != nil || strings.Trim(number, "0123456789") != "":
		return 0, false, fmt.Errorf("%q: want a number such as 5, or a share such as 10%%", text)
	case k < 1:
		return 0, false, fmt.Errorf("%q: want at least 1", text)
	}
	return float64(k), false, nil
}

func parseBreaker(text string, total int) (b Breaker, err error) {
	if text == "" {
		return b, nil
	}
	number, within, ok := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	d, bad := time.ParseDuration(within)
	switch {
	case !ok || err != nil || bad != nil:
		return b, fmt.Errorf("%q: want failures / time, such as 3/10m", text)
	case n < 1 || n > BreakerMax:
		return b, fmt.Errorf("%q: want 1 to %d failures", text, BreakerMax)
	case d < time.Second || d > withinMax:
		return b, fmt.Errorf("%q: want a time from 1s to 24h", text)
	case n > total:
		return b, fmt.Errorf("%q: %s", text, onlySoMany(total))
	}
	return Breaker{n, d}, nil
}

// parseWaves reads how many hosts have begun with each wave, and returns the size of each wave.
// Shares are rounded up.
func parseWaves(texts []string, total int) ([]int, error) {
	var waves []int
	var errs []error
	begun, before := 0, ""
	for _, text := range texts {
		n, percent, err := parseShare(strings.TrimSpace(text), total)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		upTo := int(math.Ceil(n - 1e-9))
		said := text
		if percent {
			said = fmt.Sprintf("%s is %d of %d hosts", text, upTo, total)
		}
		switch {
		case upTo > total:
			errs = append(errs, fmt.Errorf("%s: %s", text, onlySoMany(total)))
			continue
		case upTo <= begun:
			errs = append(errs, fmt.Errorf("%s: want more than the wave before, %s", said, before))
			continue
		}
		waves = append(waves, upTo-begun)
		begun, before = upTo, said
	}
	if len(errs) == 0 && len(texts) > 0 && begun < total {
		errs = append(errs, fmt.Errorf("the last one, %s, leaves %d hosts out: end with 100%%", before,
			total-begun))
	}
	return waves, errors.Join(errs...)
}

func parseCanary(text string, total int) ([]int, error) {
	n, percent, err := parseShare(text, total)
	if percent {
		return nil, fmt.Errorf("%q: want a number of hosts, such as 3", text)
	}
	if err != nil {
		return nil, err
	}
	if int(n) >= total {
		return nil, fmt.Errorf("%s of %d hosts: want less than all, so that others come after it", text,
			total)
	}
	return []int{int(n), total - int(n)}, nil
}

func parseSoak(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > soakMax {
		return 0, fmt.Errorf("%q: want a time from 0s to 720h, such as 5m", text)
	}
	return d, nil
}

// Spread assigns the hosts of a task to waves so that no wave has two hosts of a group. groups
// holds the group of each host, empty for none; sizes holds the wanted size of each wave. It keeps
// the order of hosts as far as possible. Hosts without a place get further waves at the end. It
// returns the indexes of the hosts in their new order, and the size of each wave.
func Spread(groups []string, sizes []int) (order, waves []int) {
	rest := make([]int, len(groups))
	for i := range rest {
		rest[i] = i
	}
	for len(rest) > 0 {
		size := len(rest)
		if len(waves) < len(sizes) {
			size = sizes[len(waves)]
		}
		var later []int
		n, in := 0, map[string]bool{}
		for _, host := range rest {
			g := groups[host]
			if n == size || in[g] {
				later = append(later, host)
				continue
			}
			in[g] = g != ""
			order = append(order, host)
			n++
		}
		waves, rest = append(waves, n), later
	}
	return order, waves
}

// onlySoMany explains that a task has too few hosts for the ask.
func onlySoMany(hosts int) string {
	if hosts == 1 {
		return "there is only 1 host"
	}
	return fmt.Sprintf("there are only %d hosts", hosts)
}
