package tasks

import (
	"context"

	"muster/api"
	"muster/history"
)

// Newest returns the newest jobs of a runbook in history, as the caller of a context sees them.
func (s HistoryRoutes) Newest(ctx context.Context, runbook string, most int) ([]api.PastJob,
	error) {
	list, _, err := s.page(ctx, history.Filter{Runbook: runbook}, "", most)
	return list, err
}
