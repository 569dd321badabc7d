package main

import (
	"net/http"
	"strings"
	"testing"

	"muster/testkit/apitest"
)

// A Redis that was emptied knows no zone and no node until nodes report again. Lists do not claim
// then that nothing was ever there.
func TestListsOfAnEmptiedRedisSayThatNodesReportAgain(t *testing.T) {
	t.Parallel()
	for lost, want := range map[string]string{
		`{"lost": "1 freeze"}`: "Redis was emptied, and nodes report again within ten seconds",
		`{}`:                   "`muster master`",
	} {
		a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/pauses": apitest.Answer(lost),
			"GET /v1/queue": apitest.Answer(`{"zones": []}`), "GET /v1/nodes": apitest.Answer(`{"nodes": []}`)})
		for _, list := range []string{"queue", "nodes"} {
			_, _, words := muster(t, a.URL, list)
			if !strings.Contains(words, want) || strings.Contains(words, "ever") {
				t.Errorf("%s with %s: %s, want %q", list, lost, words, want)
			}
		}
	}
}
