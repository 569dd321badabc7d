package trust

import (
	"encoding/json"
	"strconv"
	"strings"

	"muster/windows"
)

// This file has the form in which Redis keeps a timetable with what proves it: fields of a hash.

// The names of the fields. Those of excerpts end with a scope, those of shares with a number.
const (
	fieldVersion   = "version"
	fieldStamp     = "stamp"
	fieldTable     = "table"
	fieldOf        = "excerpts" // the version of the excerpts
	fieldExcerpt   = "excerpt:"
	fieldStatement = "statement"
	fieldSignature = "signature"
	fieldShare     = "share:"
)

// TimesAsked says which parts of a timetable somebody reads, beside its statement.
type TimesAsked struct {
	Table  bool     // the whole text
	Scopes []string // the excerpts of these
	Shares []int    // these shares
}

// KeptTimes are parts of a timetable as Redis has them, at one moment: nobody has examined them.
type KeptTimes struct {
	Version, Stamp string // empty version: there is no timetable
	Statement      []byte
	Signature      string

	Table      []byte   // nil: it was not asked for, or there is none
	ExcerptsOf string   // the version of the excerpts
	Excerpts   [][]byte // nil: the scope has none
	Shares     []string
}

// Fields returns the names of the fields that have what somebody asks for.
func (a TimesAsked) Fields() []string {
	fields := []string{fieldVersion, fieldStamp, fieldStatement, fieldSignature, fieldOf}
	for _, scope := range a.Scopes {
		fields = append(fields, fieldExcerpt+scope)
	}
	for _, n := range a.Shares {
		fields = append(fields, fieldShare+strconv.Itoa(n))
	}
	if a.Table {
		fields = append(fields, fieldTable)
	}
	return fields
}

// Kept reads the values of these fields, as HMGET answers them.
func (a TimesAsked) Kept(values []any) KeptTimes {
	next := func() []byte {
		text, is := values[0].(string)
		if values = values[1:]; is {
			return []byte(text)
		}
		return nil
	}
	k := KeptTimes{Version: string(next()), Stamp: string(next()), Statement: next(),
		Signature: string(next()), ExcerptsOf: string(next())}
	for range a.Scopes {
		k.Excerpts = append(k.Excerpts, next())
	}
	for range a.Shares {
		k.Shares = append(k.Shares, string(next()))
	}
	if a.Table {
		k.Table = next()
	}
	return k
}

// CopyOf reads a timetable of which somebody has kept all fields but the excerpts.
func CopyOf(fields map[string]string) KeptTimes {
	k := KeptTimes{Version: fields[fieldVersion], Stamp: fields[fieldStamp],
		Statement: []byte(fields[fieldStatement]), Signature: fields[fieldSignature]}
	if text, is := fields[fieldTable]; is {
		k.Table = []byte(text)
	}
	return k
}

// CopiedFields returns the names of the fields that CopyOf reads.
func CopiedFields() []string {
	return []string{fieldTable, fieldVersion, fieldStamp, fieldStatement, fieldSignature}
}

// ProvesTimes reports whether a field belongs to the proof of a timetable.
func ProvesTimes(field string) bool {
	return field == fieldStatement || field == fieldSignature || strings.HasPrefix(field, fieldShare)
}

// Prove returns the fields that prove a timetable: see State; none: there is no key.
func (n *Notary) Prove(t Times, text []byte, excerpts map[string][]byte) (map[string]string,
	error) {
	stated, shares := t.State(text, excerpts)
	fields, err := n.Restate(stated)
	if len(fields) > 0 {
		for i, share := range shares {
			fields[fieldShare+strconv.Itoa(i)] = share
		}
	}
	return fields, err
}

// Restate returns the fields with a statement alone.
func (n *Notary) Restate(t Times) (map[string]string, error) {
	statement, signature, err := n.Sign(t)
	if err != nil || signature == "" {
		return nil, err
	}
	return map[string]string{fieldStatement: string(statement), fieldSignature: signature}, nil
}

// Mark returns the mark of the timetable, as [windows.Timetable] has it.
func (k KeptTimes) Mark() string {
	if k.Version == "" {
		return ""
	}
	return k.Version + "." + k.Stamp
}

// Timetable reads the text of a timetable.
func (k KeptTimes) Timetable() (t windows.Timetable, err error) {
	if k.Table != nil {
		err = json.Unmarshal(k.Table, &t)
	}
	// A timetable that somebody else wrote may contradict itself.
	t.Mark, t.Version = k.Mark(), k.version()
	return t, err
}

// version returns the number of the version; 0: there is none.
func (k KeptTimes) version() int64 {
	n, err := strconv.ParseInt(k.Version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
