// Package owners says what stands in the file of a slot: the zone for which its owner works, and
// the take that is under way. It is pure.
//
// Floor 2: may import internal/proc.
package owners

import (
	"strconv"
	"strings"

	"muster/internal/proc"
)

// mark stands between the zone and the request id of a take that is under way.
const mark = " take "

// Taking returns the text of a slot whose master takes jobs in a zone.
func Taking(zone, request string) string { return zone + mark + request }

// Zone returns the zone of a slot; it may be empty.
func Zone(h proc.Holder) string {
	zone, _, _ := strings.Cut(h.Text, " ")
	return zone
}

// Take returns the request id of a take that was under way when the master died; empty: there was
// none.
func Take(h proc.Holder) string {
	_, request, _ := strings.Cut(h.Text, mark)
	return request
}

// IsSlot reports whether a text can be the name of a slot.
func IsSlot(name string) bool {
	i, err := strconv.Atoi(name)
	return err == nil && i > 0 && strconv.Itoa(i) == name
}
