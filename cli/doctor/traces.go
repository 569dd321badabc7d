package doctor

import (
	"context"

	"muster/cli"
	"muster/internal/settings"
	"muster/internal/wording"
	"muster/server/traces"
)

// lookAtTraces asks the collector of traces whether it takes a request. The request has no trace.
func lookAtTraces(ctx context.Context, s settings.Settings) []Finding {
	c := s.Past.Traces.Config()
	if c.Endpoint == "" {
		return nil
	}
	where := wording.Clip(c.Endpoint)
	if c.Validate() != nil {
		return nil // the configuration has a finding already
	}
	if err := traces.Probe(ctx, c, cli.Version); err != nil {
		return []Finding{{Wrong, "traces", where, err.Error(), "it takes a request without traces",
			"start the collector, or correct traces.* in muster.yaml: docs/TRACES.md"}}
	}
	return []Finding{{Well, "traces", where, "it takes requests", "", ""}}
}
