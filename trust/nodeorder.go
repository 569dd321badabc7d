package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"muster/internal/serverkey"
)

// NodeOrder is an order that a node takes nothing, or the end of that order.
type NodeOrder struct {
	Form         int       `json:"node_order"` // 1
	Installation string    `json:"installation"`
	Node         string    `json:"node"`
	Number       int64     `json:"number"` // of a later order it is greater
	Paused       bool      `json:"paused"`
	Note         string    `json:"note"` // by whom, and why
	At           time.Time `json:"at"`
}

// kept is the form in which Redis has an order of a node. The order is a text in it, because its
// signature holds for these bytes.
type kept struct {
	Order     string `json:"order"`
	Signature string `json:"signature,omitempty"`
}

const (
	nodeOrderForm = 1

	// nodeOrderMax bounds the bytes of an order with its signature.
	nodeOrderMax = 64 << 10
)

// Sign returns the text of an order for Redis, signed in the name of the servers if there is a key.
func (o NodeOrder) Sign(k serverkey.Keys) (string, error) {
	o.Form, o.At = nodeOrderForm, o.At.UTC()
	if !k.None() {
		o.Installation = k.Installation()
	}
	order, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	text := kept{Order: string(order)}
	if !k.None() {
		// The namespace is that of the timetable, because the file of signers of each installation
		// lets servers sign in it. No text is both: each has a field that the other one refuses.
		if text.Signature, err = SignAs(k, NamespaceTimes, order); err != nil {
			return "", err
		}
	}
	all, err := json.Marshal(text)
	return string(all), err
}

// ReadNodeOrder reads the order about a node. by are those whose signatures count; nil: Redis is
// believed.
func ReadNodeOrder(text, node, installation string, by *Signers) (*NodeOrder, error) {
	if len(text) > nodeOrderMax {
		return nil, fmt.Errorf("it has %d bytes: at most %d", len(text), nodeOrderMax)
	}
	var k kept
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return nil, errors.New("it is not of the form that servers write")
	}
	if by != nil {
		if err := by.server(k.Signature, NamespaceTimes, []byte(k.Order)); err != nil {
			return nil, fmt.Errorf("it is not what a server has signed: %w", err)
		}
	}
	var o NodeOrder
	d := json.NewDecoder(bytes.NewReader([]byte(k.Order)))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil || d.More() || o.Form != nodeOrderForm {
		return nil, errors.New("it is of a form that this muster does not know: update it")
	}
	if o.Node != node {
		return nil, fmt.Errorf("it is about another node, %q", o.Node)
	}
	if by != nil && o.Installation != installation {
		return nil, fmt.Errorf("it is of another installation, %q", o.Installation)
	}
	return &o, nil
}
