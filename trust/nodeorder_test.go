package trust_test

import (
	"strings"
	"testing"
	"time"

	"muster/internal/serverkey"
	"muster/trust"
)

func nodeKeys(t *testing.T, house string, b byte) serverkey.Keys {
	t.Helper()
	k, err := serverkey.Parse([]byte(serverkey.File(house, [serverkey.Size]byte{b})))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A node believes the order about itself that a server of its installation has signed, and no other
// text; a node without a folder trust believes Redis.
func TestANodeBelievesTheOrderOfAServer(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	ours := nodeKeys(t, "ourhouse", 1)
	by, err := trust.ServersOf(ours, now)
	if err != nil {
		t.Fatal(err)
	}
	o := trust.NodeOrder{Node: "n1", Number: 7, Paused: true, Note: "paused by alice: cables", At: now}
	sign := func(o trust.NodeOrder, k serverkey.Keys) string {
		text, err := o.Sign(k)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := sign(o, ours)
	for name, c := range map[string]struct {
		text string
		by   *trust.Signers
		want string // of the error
	}{
		"signed":                {good, &by, ""},
		"signed, Redis counts":  {good, nil, ""},
		"unsigned, Redis too":   {sign(o, serverkey.Keys{}), nil, ""},
		"unsigned":              {sign(o, serverkey.Keys{}), &by, "no server has signed it"},
		"changed":               {strings.Replace(good, "alice", "mallory", 1), &by, "not what a server has signed"},
		"of others":             {sign(o, nodeKeys(t, "ourhouse", 2)), &by, "not what a server has signed"},
		"of another house":      {sign(o, nodeKeys(t, "theirhouse", 1)), &by, "another installation"},
		"about another":         {sign(trust.NodeOrder{Node: "n2"}, ours), &by, "about another node"},
		"nonsense":              {"{", &by, "not of the form"},
		"nothing":               {"", nil, "not of the form"},
		"too much":              {strings.Repeat(" ", 70000) + good, nil, "at most 65536"},
		"of a later muster":     {`{"order":"{\"node_order\":2,\"node\":\"n1\"}"}`, nil, "does not know"},
		"with an unknown field": {`{"order":"{\"node_order\":1,\"node\":\"n1\",\"x\":1}"}`, nil, "does not know"},
	} {
		got, err := trust.ReadNodeOrder(c.text, "n1", "ourhouse", c.by)
		switch {
		case c.want == "" && (err != nil || got.Number != 7 || !got.Paused || got.Note != o.Note || !got.At.Equal(now)):
			t.Errorf("%s: %+v, %v", name, got, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzNodeOrder: nothing that Redis may have makes a node panic, and unsigned texts stay refused.
func FuzzNodeOrder(f *testing.F) {
	f.Add(`{"order":"{\"node_order\":1,\"node\":\"n1\",\"paused\":true}","signature":"x"}`)
	f.Add("{}")
	f.Fuzz(func(t *testing.T, text string) {
		by := trust.Signers{Now: time.Unix(1e9, 0)}
		if _, err := trust.ReadNodeOrder(text, "n1", "h", &by); err == nil {
			t.Errorf("believed: %q", text)
		}
		if o, err := trust.ReadNodeOrder(text, "n1", "h", nil); err == nil && o.Node != "n1" {
			t.Errorf("%+v", o)
		}
	})
}
