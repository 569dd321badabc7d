package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// The kinds of entries.
const (
	KindOrder   = "order"   // somebody orders something; the entry is durable before its effect
	KindOutcome = "outcome" // the end of the request whose entry Of names
	KindRefused = "refused" // a request or a login that was refused, and had no effect
	KindNote    = "note"    // muster did something by itself
)

// The outcomes of requests.
const (
	Done    = "done"
	Refused = "refused" // nothing was done
	Failed  = "failed"  // it is not known how much was done
)

// The ways on which an entry can come late into the tree.
const (
	LateSpool  = "spool"  // a file of the server kept it while SQL was away
	LateMemory = "memory" // neither SQL nor the file could be written: it was an order that stops
)

// version is that of the form of entries.
const version = 1

// The bounds of an entry, in bytes.
const (
	leafMax = 4 << 10
	wordMax = 64
	textMax = 200
)

// An Entry is one line of the log. The order of its fields is that of its bytes.
type Entry struct {
	Version int    `json:"v"`
	Seq     int64  `json:"seq"` // place in the log, from 0
	ID      string `json:"id"`  // 32 hex digits
	At      Time   `json:"at"`
	Kind    string `json:"kind"`
	Who     string `json:"who"`              // reference to a name: see Person; empty: nobody is known
	Proof   string `json:"proof,omitempty"`  // how the caller proved who it is
	Verb    string `json:"verb"`             // such as task.submit
	Object  string `json:"object,omitempty"` // such as task/0wcy7y2fb2
	Task    *Task  `json:"task,omitempty"`
	Said    string `json:"said,omitempty"` // commitment to Private; empty: there is nothing
	End     *End   `json:"end,omitempty"`
	Server  string `json:"server,omitempty"` // that wrote it
	Late    string `json:"late,omitempty"`   // empty: it was in the tree before its effect
	Times   int64  `json:"times,omitempty"`  // so many events alike are in this entry; 0: one
}

// Task says what an order puts on how many hosts. No value of an argument is in it.
type Task struct {
	Runbook     string `json:"runbook,omitempty"`
	RunbookHash string `json:"runbook_hash,omitempty"`
	Order       string `json:"order,omitempty"` // hash of the order
	Hosts       int    `json:"hosts,omitempty"`
	Customers   int    `json:"customers,omitempty"`
	Zones       int    `json:"zones,omitempty"`
}

// End says how a request ended.
type End struct {
	Of     string `json:"of,omitempty"` // id of the entry that was written before; empty: none was
	Result string `json:"result"`
	Status int    `json:"status,omitempty"` // of HTTP
}

// Time is an instant in UTC with microseconds. Its text has one form.
type Time struct{ time.Time }

const timeForm = "2006-01-02T15:04:05.000000Z"

// TimeOf cuts an instant to what an entry keeps.
func TimeOf(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// MarshalJSON returns the one form.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format(timeForm) + `"`), nil
}

// UnmarshalJSON reads the one form and no other.
func (t *Time) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	at, err := time.Parse(timeForm, text)
	if err != nil || at.Format(timeForm) != text {
		return fmt.Errorf("time %.40q: want the form %s", text, timeForm)
	}
	t.Time = at
	return nil
}

// Clean returns a text as an entry keeps it: valid, without control characters, and bounded.
// Words that look like the secret of a token are left out: people paste tokens into wrong places.
func Clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError || r == 0x2028 || r == 0x2029 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = veil(s)
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// tokenPrefixes begin the secrets of tokens.
var tokenPrefixes = []string{"mst_", "muster_"}

// secretMin is the length from which on a word with such a prefix counts as a secret.
const secretMin = 20

// ofNoSecret reports whether a secret cannot have this character.
func ofNoSecret(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-'
}

// veil leaves the secrets of tokens out of a text.
func veil(s string) string {
	for _, prefix := range tokenPrefixes {
		rest, out := s, ""
		for {
			before, after, found := strings.Cut(rest, prefix)
			out += before
			if !found {
				break
			}
			n := strings.IndexFunc(after, ofNoSecret)
			if n < 0 {
				n = len(after)
			}
			word := after[:n]
			if len(prefix)+n >= secretMin {
				word = "[left out]"
			}
			out += prefix + word
			rest = after[n:]
		}
		s = out
	}
	return s
}

// Cleaned returns the entry with texts that are valid and bounded.
func (e Entry) Cleaned() Entry {
	e.Version = version
	e.At = TimeOf(e.At.Time)
	e.Proof, e.Verb = Clean(e.Proof, textMax), Clean(e.Verb, wordMax)
	e.Object, e.Server = Clean(e.Object, textMax), Clean(e.Server, textMax)
	if e.Task != nil {
		t := *e.Task
		t.Runbook, t.RunbookHash = Clean(t.Runbook, textMax), Clean(t.RunbookHash, textMax)
		t.Order = Clean(t.Order, textMax)
		e.Task = &t
	}
	return e
}

// Leaf returns the bytes of an entry: the leaf of the tree. An error is a mistake of the caller.
func (e Entry) Leaf() ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	leaf := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if len(leaf) > leafMax {
		return nil, fmt.Errorf("an entry of %d bytes: want at most %d", len(leaf), leafMax)
	}
	return leaf, nil
}

// Parse reads the bytes of an entry. It accepts only what Leaf returns.
func Parse(leaf []byte) (Entry, error) {
	var e Entry
	if len(leaf) > leafMax {
		return e, fmt.Errorf("an entry of %d bytes: want at most %d", len(leaf), leafMax)
	}
	dec := json.NewDecoder(bytes.NewReader(leaf))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return Entry{}, fmt.Errorf("entry: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Entry{}, errors.New("entry: something follows it")
	}
	again, err := e.Leaf()
	if err != nil {
		return Entry{}, err
	}
	if !bytes.Equal(again, leaf) {
		return Entry{}, errors.New("entry: it is not in the one form of its bytes")
	}
	return e, nil
}

func (e Entry) check() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf("entry: "+format, args...))
		}
	}
	wrong(e.Version != version, "version %d: want %d", e.Version, version)
	wrong(e.Seq < 0, "seq %d: want 0 or more", e.Seq)
	wrong(!isHex(e.ID, idBytes), "id %.40q: want %d hex digits", e.ID, 2*idBytes)
	wrong(e.Who != "" && !isHex(e.Who, hashBytes), "who %.80q: want %d hex digits", e.Who, 2*hashBytes)
	wrong(e.Said != "" && !isHex(e.Said, hashBytes), "said %.80q: want %d hex digits", e.Said,
		2*hashBytes)
	wrong(e.Verb == "", "it has no verb")
	wrong(e.Times < 0, "times %d: want 0 or more", e.Times)
	switch e.Kind {
	case KindOrder, KindOutcome, KindRefused, KindNote:
	default:
		wrong(true, "kind %.40q", e.Kind)
	}
	wrong(e.Kind == KindOutcome && (e.End == nil || !isHex(e.End.Of, idBytes)),
		"an outcome that names no entry")
	wrong(e.Late != "" && e.Late != LateSpool && e.Late != LateMemory, "late %.40q", e.Late)
	return errors.Join(errs...)
}

func isHex(s string, bytes int) bool {
	return len(s) == 2*bytes && strings.Trim(s, "0123456789abcdef") == ""
}
