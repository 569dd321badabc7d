package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A Record is an entry as the tables keep it, and a line of an export: the leaf, and what stands
// beside it.
type Record struct {
	Seq       int64   `json:"seq"`
	Leaf      string  `json:"leaf,omitempty"`      // empty: the tables have a hash here, but no entry
	Signature string  `json:"signature,omitempty"` // empty: the server had no key
	Hash      string  `json:"hash,omitempty"`      // of the leaf, as the tree stores it
	Person    *Person `json:"person,omitempty"`    // nil: the entry names nobody
	Salt      string  `json:"salt,omitempty"`      // of Private; empty: erased, or there is nothing
	Private   Private `json:"private,omitzero"`
	Odd       string  `json:"odd,omitempty"` // a column beside the leaf that says something else
}

// A Header is the first line of an export.
type Header struct {
	Form   int      `json:"form"`
	Origin string   `json:"origin"`
	Keys   []string `json:"keys"` // of servers, as the server says: an auditor has them from elsewhere
	Size   int64    `json:"size"` // entries of the tree
	Root   string   `json:"root"` // hash of the tree, from the stored hashes
	At     Time     `json:"at"`
}

// FormOfExports is the number of the form of exports.
const FormOfExports = 1

// A Line is one line of an export: one of its fields is set. The header comes first, then all
// checkpoints, then all entries in their order, then the end.
type Line struct {
	Log        *Header `json:"log,omitempty"`
	Checkpoint string  `json:"checkpoint,omitempty"` // signed
	Entry      *Record `json:"entry,omitempty"`
	End        *Tail   `json:"end,omitempty"`
}

// Tail is the last line of an export. An export without it broke off.
type Tail struct {
	Entries int64 `json:"entries"`
}

// ParseLine reads a line of an export or of the copy of a sink.
func ParseLine(data []byte) (Line, error) {
	var l Line
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return l, fmt.Errorf("line: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Line{}, errors.New("line: something follows it")
	}
	n := 0
	for _, is := range []bool{l.Log != nil, l.Checkpoint != "", l.Entry != nil, l.End != nil} {
		if is {
			n++
		}
	}
	if n != 1 {
		return Line{}, fmt.Errorf("line: it has %d of log, checkpoint, entry and end: want one", n)
	}
	if l.Log != nil && l.Log.Form != FormOfExports {
		return Line{}, fmt.Errorf("line: form %d of an export: this muster reads %d", l.Log.Form,
			FormOfExports)
	}
	return l, nil
}

// A Proof shows that an entry is in the log: it holds without the rest of the log.
type Proof struct {
	Entry      Record   `json:"entry"`
	Checkpoint string   `json:"checkpoint"` // signed; of a tree that has the entry
	Hashes     []string `json:"hashes"`     // from the leaf up to the root
	Keys       []string `json:"keys"`       // as the server says
}

// A Growing shows that the log of an older checkpoint is the beginning of the log of a newer one.
type Growing struct {
	Older  string   `json:"older"` // signed checkpoints
	Newer  string   `json:"newer"`
	Hashes []string `json:"hashes"`
	Keys   []string `json:"keys"`
}
