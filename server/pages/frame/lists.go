package frame

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// A Link is a name with an address.
type Link struct{ Name, To string }

// A Field is a filter of a list: a text, or one of some words.
type Field struct {
	Name, Value string
	Words       []string // none: any text
}

// FieldsOf returns the filters of a list as an address has them.
func FieldsOf(q url.Values, names ...string) []Field {
	var out []Field
	for _, name := range names {
		out = append(out, Field{Name: name, Value: strings.TrimSpace(q.Get(name))})
	}
	return out
}

// Ask returns the question of a list: the filters and places of its address, and how many things it
// shows at once.
func Ask(q url.Values, limit int, names ...string) url.Values {
	out := url.Values{"limit": {strconv.Itoa(limit)}}
	for _, name := range names {
		if v := strings.TrimSpace(q.Get(name)); v != "" {
			out.Set(name, v)
		}
	}
	return out
}

// Without returns a page whose list is not kept on this server, or has a filter that is wrong: with
// the words of the API in place of the list. Other errors stay errors.
func Without(s Show, noun string, err error) (Show, error) {
	switch p := ProblemOf(err); p.Status {
	case http.StatusNotFound:
		s.Parts = []Part{{ID: "none", Body: Missing(noun, p.Error())}}
		return s, nil
	case http.StatusUnprocessableEntity:
		s.Status, s.Parts = p.Status, []Part{{ID: "problem", Body: ProblemPart(p)}}
		return s, nil
	}
	return s, err
}
