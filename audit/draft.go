package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A Draft is an entry before it has its place in the log, with all that is kept beside it. A spool
// keeps drafts as lines of JSON.
type Draft struct {
	Entry   Entry   `json:"entry"` // without Seq, Who and Said
	Name    string  `json:"name,omitempty"`
	Private Private `json:"private,omitzero"`
	Salt    string  `json:"salt"`     // of Private
	NewName string  `json:"new_name"` // salt of the name, if the name has no reference yet
}

// Cleaned returns the draft with texts that are valid and bounded.
func (d Draft) Cleaned() Draft {
	d.Entry, d.Private = d.Entry.Cleaned(), d.Private.Cleaned()
	d.Name = Clean(d.Name, textMax)
	return d
}

// Line returns the line of a spool, without its end.
func (d Draft) Line() ([]byte, error) { return json.Marshal(d) }

// ParseDraft reads a line of a spool.
func ParseDraft(line []byte) (Draft, error) {
	var d Draft
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return Draft{}, fmt.Errorf("spool: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Draft{}, errors.New("spool: something follows the draft")
	}
	d = d.Cleaned()
	if !isHex(d.Salt, saltBytes) || !isHex(d.NewName, saltBytes) {
		return Draft{}, fmt.Errorf("spool: a salt that is not %d hex digits", 2*saltBytes)
	}
	return d, d.Entry.check()
}

// Place gives the draft its place in the log, and returns the record that the tables keep. The
// person is the one of the draft's name.
func (d Draft) Place(seq int64, p Person) (Record, Entry, error) {
	e := d.Entry
	e.Seq, e.Who = seq, p.Ref
	e.Said = d.Private.Commitment(d.Salt)
	leaf, err := e.Leaf()
	if err != nil {
		return Record{}, e, err
	}
	r := Record{Seq: seq, Leaf: string(leaf), Hash: LeafHash(leaf).String(), Private: d.Private}
	if e.Said != "" {
		r.Salt = d.Salt
	}
	if p.Ref != "" {
		r.Person = &p
	}
	return r, e, nil
}
