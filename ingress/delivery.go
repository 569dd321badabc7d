package ingress

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"muster/fleet"
	"muster/internal/jsonpath"
	"muster/internal/wording"
)

// A Delivery is a message that was verified, with all that is known of it.
type Delivery struct {
	ID       string // of the event: the same for a repeated delivery
	Kind     string
	Customer string
}

// A Refusal says why a message is no event. Only a sender that was verified is told its words.
type Refusal struct {
	Why   Why
	Words string
}

// Error returns the words.
func (r *Refusal) Error() string { return r.Words }

// Accept verifies a message and reads it. Its error is a *Refusal.
func (s Source) Accept(m Message, secrets []Secret) (Delivery, error) {
	if why := s.Form.Verify(m, secrets); why != "" {
		return Delivery{}, &Refusal{why, "not accepted"}
	}
	return s.Read(m)
}

// Read returns the kind and the customer that a message names, for a sender that somebody has
// vouched for. Its error is a *Refusal.
func (s Source) Read(m Message) (Delivery, error) {
	d := Delivery{ID: s.id(m), Customer: s.Customer}
	if len(m.Body) > BodyMax {
		return d, &Refusal{TooLarge, fmt.Sprintf("the body has more than %d bytes", BodyMax)}
	}
	if !json.Valid(m.Body) {
		return d, &Refusal{NotJSON, "the body is not JSON: choose application/json as the type of " +
			"the content, where the sender has several"}
	}
	doc, err := parse(m.Body, s)
	if err != nil {
		return d, &Refusal{NotJSON, err.Error()}
	}
	if s.CustomerAt != "" {
		// The text of another value, such as a list, is no name either.
		if d.Customer, err = jsonpath.Find(doc, s.CustomerAt); err != nil ||
			fleet.CheckName(d.Customer) != nil {
			return d, &Refusal{NoName, "the body has no name of a customer at " + s.CustomerAt}
		}
	}
	if d.Kind, err = s.kind(m, doc); err != nil {
		return d, &Refusal{NoKind, err.Error()}
	}
	return d, nil
}

// parse parses a body of which a source needs a value.
func parse(body []byte, s Source) (any, error) {
	if s.CustomerAt == "" && (s.Form.Kind != "" || len(s.Form.KindAt) == 0) {
		return nil, nil
	}
	return jsonpath.Parse(body)
}

// kind returns the kind of an event. One without a kind has the empty one.
func (s Source) kind(m Message, doc any) (string, error) {
	var kind string
	if s.Form.Kind != "" {
		kind, _ = m.one(s.Form.Kind)
	}
	var parts []string
	if s.Form.Kind == "" {
		for i, path := range s.Form.KindAt {
			text, err := jsonpath.Find(doc, path)
			if err != nil && i == 0 && s.Form.KindElse != "" {
				text, err = jsonpath.Find(doc, s.Form.KindElse)
				text = text[strings.LastIndexByte(text, '.')+1:]
			}
			if err == nil {
				parts = append(parts, text)
			}
		}
		kind = strings.Join(parts, ".")
	}
	if kind == "" {
		return "", nil
	}
	return kind, CheckKind(kind)
}

// kindMax bounds the kind of an event.
const kindMax = 100 // bytes

// CheckKind returns an error unless a text can be the kind of an event.
func CheckKind(text string) error {
	const most = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/-"
	if text == "" || len(text) > kindMax || strings.Trim(text, most) != "" {
		return fmt.Errorf("kind %s: want at most %d letters, digits and ._:/-",
			wording.Quote(wording.Clip(text)), kindMax)
	}
	return nil
}

// ids is the alphabet of the ids of events.
var ids = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// idLength is the length of the id of an event: 130 bits.
const idLength = 26

// IsID reports whether a text can be the id of an event.
func IsID(text string) bool {
	return len(text) == idLength && strings.Trim(text, "0123456789abcdefghjkmnpqrstvwxyz") == ""
}

// id returns the id of a message. It is made of the id of the delivery where the proof covers
// that, and else of the bytes: whoever repeats a captured message can write any header.
func (s Source) id(m Message) string {
	h := sha256.New()
	part(h, s.Name)
	if id, ok := m.one(s.Form.ID); s.Form.ID != "" && s.Form.Proof != HMAC && ok {
		part(h, "id")
		part(h, id)
	} else {
		part(h, "body")
		h.Write(m.Body)
	}
	return ids.EncodeToString(h.Sum(nil))[:idLength]
}

// IDOf returns the id of an event that is told from others by these texts.
func IDOf(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		part(h, text)
	}
	return ids.EncodeToString(h.Sum(nil))[:idLength]
}

// part writes a text with its length, so that no two lists of texts are the same bytes.
func part(w io.Writer, text string) { fmt.Fprintf(w, "%d:%s", len(text), text) }
