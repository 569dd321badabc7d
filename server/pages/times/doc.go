// Package times has the pages of windows: a calendar of openings and freezes, the forecast of the
// queue for the next opening, and the orders about openings, approvals and freezes.
//
// Floor 6: may import server/pages/frame, windows and what is below it.
package times

import "muster/server/pages/frame"

// Content returns the pages of windows.
func Content() frame.Content {
	return frame.Content{
		Views: map[string]frame.View{"/windows": theCalendar},
		Orders: map[string]frame.Planner{
			"/windows/order/propose":                       propose,
			"/windows/order/freeze":                        freeze,
			"/windows/{window}/order/approve":              approve,
			"/windows/approvals/{approval}/order/withdraw": withdraw,
			"/windows/freezes/{freeze}/order/unfreeze":     unfreeze,
		},
		Answers: map[string]frame.Answer{"GET /windows/calendar.ics": export,
			"GET /windows/import": importForm, "POST /windows/import": importFile},
	}
}
