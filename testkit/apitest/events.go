package apitest

import (
	"fmt"
	"net/http"
	"strings"
)

// Streams answers with one stream after the other, and cuts each.
func Streams(texts ...string) http.HandlerFunc {
	var all []http.HandlerFunc
	for _, text := range texts {
		all = append(all, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, strings.ReplaceAll(text, "LAST", r.Header.Get("Last-Event-ID")))
		})
	}
	return InTurn(append(all, Deny(404, `{"detail": "that is all"}`))...)
}
