package part

import (
	"strconv"
	"strings"
)

// Where is the condition of a query in SQL, with its values. The zero value is no condition.
type Where struct {
	Args  []any
	terms []string
}

// And adds a term; each ? in it stands for one of the values.
func (w *Where) And(term string, values ...any) {
	for _, v := range values {
		w.Args = append(w.Args, v)
		term = strings.Replace(term, "?", "$"+strconv.Itoa(len(w.Args)), 1)
	}
	w.terms = append(w.terms, term)
}

// Text returns the condition from its word where on; empty: there is no term.
func (w *Where) Text() string {
	if len(w.terms) == 0 {
		return ""
	}
	return "where " + strings.Join(w.terms, " and ")
}
