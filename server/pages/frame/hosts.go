package frame

import (
	"net/http"

	"muster/api"
)

// HostsAtOnce is the number of hosts that one question gets.
const HostsAtOnce = 5000

// A HostGroup has the hosts that are alike in what the page groups by.
type HostGroup struct {
	Name    string
	Count   int
	Drained int
	Hosts   string // folded
	On      string // the selector of the group; empty: there is none
	Names   []string
}

// HostPage asks for a page of the hosts that a selector picks, drained ones too.
func HostPage(h House, on, cursor string, limit int) (api.HostList, error) {
	var page api.HostList
	err := h.Call(http.MethodPost, "/v1/hosts/query", api.HostQuery{On: on, Cursor: cursor,
		Limit: limit, Drained: true}, &page)
	return page, err
}
