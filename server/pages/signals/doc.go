// Package signals has the pages of what comes in from elsewhere and of what goes out: events,
// triggers with what they did, and notifications with their receivers.
//
// Floor 6: may import server/pages/frame and what is below it.
package signals

import (
	"net/url"
	"slices"

	"muster/server/pages/frame"
)

// Content returns the pages.
func Content() frame.Content {
	return frame.Content{
		Views: map[string]frame.View{"/events": theEvents, "/events/{event}": event,
			"/events/{event}/test": eventTest, "/triggers": theTriggers, "/triggers/{trigger}": trigger,
			"/firings": theFirings, "/notices": theNotices, "/notices/{message}": notice,
			"/receivers": theReceivers},
		Orders: map[string]frame.Planner{"/events/{event}/order/replay": replay,
			"/receivers/{receiver}/order/test": testReceiver},
	}
}

// shown is the number of things that a page of a list has.
const shown = 50

// nearEvents links the pages of events and triggers; here is the name of the one that is open.
func nearEvents(here string) []frame.Link {
	return near(here, []frame.Link{{Name: "Events", To: "/events"},
		{Name: "Triggers", To: "/triggers"}, {Name: "What triggers did", To: "/firings"}})
}

// nearNotices links the pages of notifications.
func nearNotices(here string) []frame.Link {
	return near(here, []frame.Link{{Name: "Messages", To: "/notices"},
		{Name: "Receivers", To: "/receivers"}})
}

// near takes the address from the link to the page that is open.
func near(here string, list []frame.Link) []frame.Link {
	for i := range list {
		if list[i].Name == here {
			list[i].To = ""
		}
	}
	return list
}

// filtered reports whether a list is narrowed by one of its fields.
func filtered(q url.Values, fields ...string) bool {
	return slices.ContainsFunc(fields, func(name string) bool { return q.Get(name) != "" })
}
