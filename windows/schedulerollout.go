package windows

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/internal/wording"
)

// RolloutRequest describes the rollout of a schedule's tasks, as people write it. Its fields are
// those of jobs.RolloutAsk, which explains them. Each tick resolves them for its hosts.
type RolloutRequest struct {
	MaxFailed     string            `json:"max_failed,omitempty"`
	UnreachableOK bool              `json:"unreachable_ok,omitempty"`
	Breaker       string            `json:"breaker,omitempty"`
	Canary        string            `json:"canary,omitempty"`
	Waves         []string          `json:"waves,omitempty"`
	Soak          string            `json:"soak,omitempty"`
	Gate          bool              `json:"gate,omitempty"`
	Health        string            `json:"health,omitempty"`
	HealthArgs    map[string]string `json:"health_args,omitempty"`
}

// InWaves reports whether the task works on its hosts in waves, rather than on all at once.
func (r *RolloutRequest) InWaves() bool { return r != nil && (r.Canary != "" || len(r.Waves) > 0) }

// RolloutCheck reports the mistakes of a rollout that do not depend on its hosts, by field.
type RolloutCheck func(RolloutRequest) map[string]error

var rolloutKeys = []string{"max_failed", "unreachable_ok", "breaker", "canary", "waves", "soak",
	"gate", "health", "health_args"}

// rollout reads the rollout of a schedule; nil if it has none.
func (r *reader) rollout(f map[string]*yaml.Node) *RolloutRequest {
	if !slices.ContainsFunc(rolloutKeys, func(key string) bool { return f[key] != nil }) {
		return nil
	}
	out := RolloutRequest{MaxFailed: r.text(f["max_failed"]), Breaker: r.text(f["breaker"]),
		UnreachableOK: r.flag(f["unreachable_ok"], false), Canary: r.text(f["canary"]),
		Soak: r.text(f["soak"]), Gate: r.flag(f["gate"], false), Health: r.text(f["health"]),
		HealthArgs: r.pairs("health_args", f["health_args"])}
	for _, text := range r.texts(f["waves"]) {
		// As a YAML list, or as the text of --waves.
		for wave := range strings.SplitSeq(text, ",") {
			out.Waves = append(out.Waves, strings.TrimSpace(wave))
		}
	}
	if r.check == nil {
		return &out
	}
	wrong := r.check(out)
	for _, field := range slices.Sorted(maps.Keys(wrong)) {
		if f[field] != nil {
			r.mistake(f[field], "%s: %s", field, wording.ErrorLine(wrong[field]))
		}
	}
	return &out
}

// differences names the fields in which two rollouts differ.
func (r *RolloutRequest) differences(was *RolloutRequest, note func(field, old, now string)) {
	var a, b RolloutRequest
	if was != nil {
		a = *was
	}
	if r != nil {
		b = *r
	}
	note("max_failed", a.MaxFailed, b.MaxFailed)
	note("unreachable_ok", fmt.Sprint(a.UnreachableOK), fmt.Sprint(b.UnreachableOK))
	note("breaker", a.Breaker, b.Breaker)
	note("canary", a.Canary, b.Canary)
	note("waves", strings.Join(a.Waves, ","), strings.Join(b.Waves, ","))
	note("soak", a.Soak, b.Soak)
	note("gate", fmt.Sprint(a.Gate), fmt.Sprint(b.Gate))
	note("health", a.Health, b.Health)
	for _, name := range sortedKeys(a.HealthArgs, b.HealthArgs) {
		note("health_args."+name, a.HealthArgs[name], b.HealthArgs[name])
	}
}
