package estate

import (
	"net/url"
	"slices"
	"strings"

	"muster/server/pages/frame"
)

// A verb begins an order in the field of the search. A part of a name follows it, and the search
// offers the order for each thing with such a name.
type verb struct {
	word, name string
	// at has the page of the order for each kind of thing, in which NAME stands for the thing. The
	// empty kind is an order about nothing in particular.
	at map[string]string
}

// verbs are the orders that a search finds, in the order in which the page lists them.
var verbs = []verb{
	{"halt", "Halt everything", map[string]string{"": "/order/halt"}},
	{"lift", "Lift the halt", map[string]string{"": "/order/lift"}},
	{"run", "Run", map[string]string{"runbook": "/run/NAME", "schedule": "/schedules/NAME/order/run"}},
	{"cancel", "Cancel", map[string]string{"task": "/tasks/NAME/order/cancel"}},
	{"pause", "Pause", map[string]string{"task": "/tasks/NAME/order/pause",
		"customer": "/customers/NAME/order/pause", "zone": "/zones/NAME/order/pause",
		"schedule": "/schedules/NAME/order/pause", "node": "/nodes/NAME/order/pause"}},
	{"resume", "Resume", map[string]string{"task": "/tasks/NAME/order/resume",
		"customer": "/customers/NAME/order/resume", "zone": "/zones/NAME/order/resume",
		"schedule": "/schedules/NAME/order/resume", "node": "/nodes/NAME/order/resume"}},
	{"retry", "Retry those that failed in", map[string]string{"task": "/tasks/NAME/order/retry"}},
	{"next", "Open the next wave of", map[string]string{"task": "/tasks/NAME/order/next"}},
	{"stop", "Stop", map[string]string{"task": "/tasks/NAME/order/stop"}},
	{"open", "Open the gates of", map[string]string{"task": "/tasks/NAME/order/open"}},
	{"refuse", "Refuse the gates of", map[string]string{"task": "/tasks/NAME/order/refuse"}},
	{"drain", "Drain", map[string]string{"host": "/hosts/NAME/order/drain"}},
	{"undrain", "Undrain", map[string]string{"host": "/hosts/NAME/order/undrain"}},
	{"release", "Release the lock of", map[string]string{"host": "/hosts/NAME/order/release"}},
	{"clear", "Clear", map[string]string{"group": "/groups/NAME/order/clear"}},
	{"thaw", "Thaw", map[string]string{"zone": "/zones/NAME/order/thaw"}},
	{"freeze", "Freeze", map[string]string{"": "/windows/order/freeze?level=everyone",
		"customer": "/windows/order/freeze?level=customer&of=NAME",
		"host":     "/windows/order/freeze?level=host&of=NAME"}},
	{"propose", "Propose an opening", map[string]string{"": "/windows/order/propose",
		"customer": "/windows/order/propose?customer=NAME"}},
}

// verbWords lists the words of all orders.
func verbWords() []string {
	var out []string
	for _, v := range verbs {
		out = append(out, v.word)
	}
	return out
}

// kinds lists the kinds of things of an order, for people.
func (v verb) kinds() string {
	list := frame.Sorted(v.at)
	list = slices.DeleteFunc(list, func(kind string) bool { return kind == "" })
	return strings.Join(list, ", ")
}

// ordersMax bounds the orders that a search shows.
const ordersMax = 20

// ordersFor returns the orders for a text in the field of the search. Each leads to the page of the
// order, and that page says which things it hits, and whether the person may give it.
func ordersFor(h frame.House, text string) []found {
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	var list []found
	for _, v := range verbs {
		if !strings.HasPrefix(v.word, word) || rest != "" && v.word != word {
			continue
		}
		if at := v.at[""]; at != "" && rest == "" {
			list = append(list, found{"order", v.name, at, ""})
		}
		if rest == "" {
			continue
		}
		for _, f := range lookFor(h, rest) {
			if at := v.at[f.kind]; at != "" && f.link != "/fleet" && len(list) < ordersMax {
				name := url.QueryEscape(f.name)
				if !strings.Contains(at, "=NAME") {
					name = url.PathEscape(f.name)
				}
				list = append(list, found{"order", v.name + " " + f.name,
					strings.ReplaceAll(at, "NAME", name), f.words})
			}
		}
	}
	return list
}
