package codec

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Standing is the position of a switch in one zone.
type Standing struct {
	Paused bool
	Id     int64 // of the order
	Note   string
}

// ReadSwitch returns the position of a switch, given its note and the id of the order.
func ReadSwitch(note, id string) Standing {
	n, _ := strconv.ParseInt(id, 10, 64)
	return Standing{note != "", n, note}
}

// ReadCustomers reads the zone's field: a JSON object of "instant order note".
func ReadCustomers(text string) map[string]Standing {
	var raw map[string]string
	if text == "" || json.Unmarshal([]byte(text), &raw) != nil {
		return nil
	}
	out := map[string]Standing{}
	for customer, v := range raw {
		if words := strings.SplitN(v, " ", 3); len(words) == 3 {
			out[customer] = ReadSwitch(words[2], words[1])
		}
	}
	return out
}

// WhyShut returns the reason why nothing starts in a zone, in words for people.
func WhyShut(why, owed string) string {
	_, owed, _ = strings.Cut(owed, " ")
	if owed == "" {
		return why
	}
	return owed + "; history is asked first what has ended since"
}
