package frame

import (
	"encoding/json"
	"net/http"
)

// A cell kind is one of the kinds of cells of a map.
type CellKind struct {
	Name string `json:"name"`
	Fill string `json:"fill"`           // a colour of the style sheet, or # with a number
	Mark string `json:"mark,omitempty"` // its shape; empty: a full cell
}

// A CellMap has a cell for each host, in the order of their names.
type CellMap struct {
	Names []string   `json:"names"`
	Cells string     `json:"cells"` // in base64, a byte each: the index of its kind
	Kinds []CellKind `json:"kinds"`
	Link  string     `json:"link"` // the name follows

	Set  string `json:"set,omitempty"`  // stands for the names, for who asks again
	Same bool   `json:"same,omitempty"` // Names is left out: they are those that the asker has
}

// CellsMax bounds the cells of a map.
const CellsMax = 60000

// WriteJSON writes an answer for a script of the pages.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A browser that does not read its answer has gone.
	_ = json.NewEncoder(w).Encode(v)
}
