package api

import (
	"muster/fleet"
	"muster/jobs"
)

// HostFacts holds the facts that a host reported about itself.
type HostFacts struct {
	jobs.HostFacts
	Age   float64 `json:"age"`   // seconds since then
	Stale bool    `json:"stale"` // the facts are so old that they may be wrong
}

// FactList is the answer of GET /v1/facts?on=SELECTOR.
type FactList struct {
	Hosts []HostFacts `json:"hosts"`
	None  string      `json:"none"` // hosts that never reported facts; folded
}

// ClearedHost is the answer of POST /v1/hosts/{host}/clear: what is remembered of it no more.
type ClearedHost struct {
	Host  string    `json:"host"`
	Zone  string    `json:"zone"`
	Facts int       `json:"facts"` // so many; 0: there were none
	At    jobs.Time `json:"at"`    // when it had reported them
	Note  string    `json:"note"`  // who and why
}

// Gathered is the answer of POST /v1/tasks/{task}/facts.
type Gathered struct {
	Task jobs.TaskID `json:"task"`
	Kept int         `json:"kept"` // hosts whose facts are stored now
	Bad  []BadFacts  `json:"bad"`  // hosts that reported something else
}

// BadFacts says why the facts of a host were not stored.
type BadFacts struct {
	Host  string `json:"host"`
	Error string `json:"error"`
}

// HostList is one page of the answer of GET /v1/hosts?on=SELECTOR.
type HostList struct {
	Version string       `json:"version"` // of the inventory
	Total   int          `json:"total"`   // hosts on all pages
	Hosts   []fleet.Host `json:"hosts"`
	// Drained gives the drained hosts of this page with their reasons; a host that is drained by a
	// label of the inventory has no reason.
	Drained map[string]jobs.Drain `json:"drained,omitempty"`
	// Unfenced gives the hosts of this page that keep no record of attempts, as far as is known, with
	// the reasons.
	Unfenced map[string]string `json:"unfenced,omitempty"`
	Next     string            `json:"next,omitempty"`   // cursor of the next page; empty: this was the last
	Folded   string            `json:"folded,omitempty"` // all hosts: fw[001-300],vpn1; on the first page, if asked for
	LeftOut
}

// HostQuery is the body of POST /v1/hosts/query, which is GET /v1/hosts for
// selectors that are too long for a URL.
type HostQuery struct {
	On     string `json:"on"`
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty" minimum:"0" maximum:"5000"`
	Fold   bool   `json:"fold,omitempty"`
	// Drained asks for drained hosts too, because a reader does not disturb them.
	Drained bool `json:"drained,omitempty"`
}

// HostInfo is the answer of GET /v1/hosts/{host}.
type HostInfo struct {
	fleet.Host
	Inventory string      `json:"inventory"` // version
	Limits    []string    `json:"limits"`    // limits against which its jobs count
	IsDrained bool        `json:"is_drained"`
	Drained   *jobs.Drain `json:"drained,omitempty"` // reason; missing if a label of the inventory drains the host
	// Unfenced says why the host keeps no record of attempts, as far as is known.
	Unfenced string `json:"unfenced,omitempty"`
	jobs.HostWork
}

// PublishedInventory is the answer of GET /v1/inventory: the whole inventory in force.
type PublishedInventory struct {
	Version string         `json:"version"`
	Hosts   []fleet.Host   `json:"hosts"`
	Limits  []DefinedLimit `json:"limits"`
}

// DefinedLimit is a limit of the inventory; jobs.Limit shows its use.
type DefinedLimit fleet.Limit
