package duties

import (
	"testing"
	"time"

	"muster/jobs"
)

func TestWhatIsNextAfterAWave(t *testing.T) {
	t.Parallel()
	five, over := 5, time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	runs, well := &checkup{}, &checkup{over: true}
	ill := &checkup{over: true, why: "2 of 20 hosts did not pass"}
	info := func(change func(*jobs.RolloutInfo)) jobs.RolloutInfo {
		r := jobs.RolloutInfo{Rollout: jobs.Rollout{Waves: []int{1, 9}}, Wave: 1}
		r.Over.Time = over
		change(&r)
		return r
	}
	for _, c := range []struct {
		name   string
		r      jobs.RolloutInfo
		after  time.Duration
		health *checkup
		move   move
		why    string
	}{
		{"nothing is asked for", info(func(*jobs.RolloutInfo) {}), 0, nil, "open", ""},
		{"one failed", info(func(r *jobs.RolloutInfo) { r.Failed = 1 }), 0, nil, "stop",
			"wave 1: 1 failed, and without --max-failed none may before the next wave"},
		{"one failed before, which a person knows", info(func(r *jobs.RolloutInfo) {
			r.Failed, r.Accepted = 1, 1
		}), 0, nil, "open", ""},
		{"one failed of five that may", info(func(r *jobs.RolloutInfo) {
			r.Failed, r.MaxFailed = 1, &five
		}), 0, nil, "open", ""},
		{"it soaks", info(func(r *jobs.RolloutInfo) { r.Soak = time.Minute }), 59 * time.Second, nil, "wait", ""},
		{"it has soaked", info(func(r *jobs.RolloutInfo) { r.Soak = time.Minute }), time.Minute, nil, "open", ""},
		{"it soaks, and a person says next", info(func(r *jobs.RolloutInfo) {
			r.Soak, r.Pass = time.Minute, true
		}), 0, nil, "open", ""},
		{"it is to be checked after it has soaked", info(func(r *jobs.RolloutInfo) {
			r.Soak, r.Health = time.Minute, "label"
		}), 0, nil, "wait", ""},
		{"it is to be checked", info(func(r *jobs.RolloutInfo) { r.Health = "label" }), 0, nil, "check", ""},
		{"it is being checked", info(func(r *jobs.RolloutInfo) { r.Health = "label" }), 0, runs, "wait", ""},
		{"it is well", info(func(r *jobs.RolloutInfo) { r.Health = "label" }), 0, well, "open", ""},
		{"it is well, and waits for a person", info(func(r *jobs.RolloutInfo) {
			r.Health, r.Gate = "label", true
		}), 0, well, "wait", ""},
		{"it is ill", info(func(r *jobs.RolloutInfo) { r.Health, r.Gate = "label", true }), 0, ill, "stop",
			"wave 1: health check label: 2 of 20 hosts did not pass"},
		{"it is ill, and a person says next", info(func(r *jobs.RolloutInfo) {
			r.Health, r.Pass = "label", true
		}), 0, ill, "open", ""},
		{"a person opens it", info(func(r *jobs.RolloutInfo) { r.Gate = true }), time.Hour, nil, "wait", ""},
	} {
		if move, why := nextMove(c.r, over.Add(c.after), c.health); move != c.move || why != c.why {
			t.Errorf("%s: %s %q, want %s %q", c.name, move, why, c.move, c.why)
		}
	}
}
