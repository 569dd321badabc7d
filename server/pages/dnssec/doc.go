// Package dnssec has the page of the keys of DNS zones.
//
// Floor 6: may import server/pages/frame and what is below it.
package dnssec

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"muster/api"
	"muster/server/pages/frame"
)

// zonesShown bounds the zones that a page shows in full.
const zonesShown = 20

// Content returns the page.
func Content() frame.Content {
	return frame.Content{Views: map[string]frame.View{"/dnssec": theZones}}
}

// zonesFacts has what the page shows.
type zonesFacts struct {
	api.DNSSECList
	more []api.DNSSECZone // not shown in full
	q    url.Values
}

// theZones shows DNS zones with their keys, those first whose rollover has not ended, or that have
// trouble.
func theZones(h frame.House, r *http.Request) (frame.Show, error) {
	f := zonesFacts{q: r.URL.Query()}
	ask := frame.Ask(f.q, 0, "name")
	ask.Del("limit")
	s := frame.Show{Title: "DNSSEC", Nav: "DNSSEC", Top: zonesTop(f.q)}
	if err := h.Get("/v1/dnssec", ask, &f.DNSSECList); err != nil {
		return frame.Without(s, "The keys", err)
	}
	f.sort()
	if n := len(f.Zones); n > zonesShown {
		f.Zones, f.more = f.Zones[:zonesShown], f.Zones[zonesShown:]
	}
	s.Parts = []frame.Part{{ID: "dnssec", Live: true, Body: zonesPart(f)}}
	return s, nil
}

// sort puts zones first that have trouble, then those whose rollover has not ended.
func (f zonesFacts) sort() {
	rank := func(z api.DNSSECZone) int {
		switch {
		case z.Status != nil && wrong(z.Status.DNSSECJob), z.Roll != nil && wrong(z.Roll.DNSSECJob):
			return 0
		case z.Roll != nil && z.Roll.Finished.IsZero():
			return 1
		}
		return 2
	}
	slices.SortStableFunc(f.Zones, func(a, b api.DNSSECZone) int {
		return cmp.Compare(rank(a), rank(b))
	})
}

// wrong reports whether a job has ended otherwise than well.
func wrong(j api.DNSSECJob) bool { return j.Outcome != "" && j.Outcome != "succeeded" }

// stateOf says how a job is.
func stateOf(j api.DNSSECJob) string { return cmp.Or(string(j.Outcome), string(j.State)) }

// lookNow returns the address of the form that looks at a zone again.
func lookNow(z api.DNSSECZone) string {
	return frame.With("/run/dnssec-status", url.Values{"arg.zone": {z.Name}}, "on", z.Host)
}

// phases says in words what a phase of a key means.
var phases = map[string]string{"new": "is not known everywhere yet",
	"ready": "is known everywhere, its DS is awaited", "active": "signs",
	"old": "is on its way out", "gone": "is gone"}

// known returns a text, or says that there is none.
func known(text string) string { return cmp.Or(text, "not known yet") }
