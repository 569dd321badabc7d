package windows

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// until returns the first reading that is out: `until: 2027-12-31` means to the end of that day.
func (r *reader) until(n *yaml.Node) Wall {
	w := r.wall(n)
	if w == 0 || !isDay(n.Value) {
		return w
	}
	return endOfDay(w)
}

// endOfDay is the first reading behind a day. The year 9999 has no later one that can be written.
func endOfDay(first Wall) Wall {
	if end := first + day; len(end.String()) == len("2006-01-02 15:04") {
		return end
	}
	return first + day - 1
}

func isDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}
