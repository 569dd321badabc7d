package trust

import (
	"strings"
	"testing"

	"muster/internal/serverkey"
	"muster/jobs"
)

// A vote is the signature of a person; each other signature is refused with words.
func TestAVoteIsOfAPerson(t *testing.T) {
	t.Parallel()
	k := keysFrom(t, "i1234", 1)
	by := signersOf(t, k, map[byte]string{1: `os:ann,user:ann namespaces="muster-order"`,
		2: `os:bob namespaces="muster-order",valid-before="20261101Z"`, 3: `os:cem namespaces="file"`})
	m := orderFor(t, jobs.Spec{Runbook: "exec", Operator: "os:ann"}, "fw1")
	for _, x := range []struct{ name, text, words string }{
		{"a person", signedBy(t, personKey(1), NamespaceOrder, m.order), ""},
		{"a server", signedBy(t, k.Signer(serverkey.Orders), NamespaceOrder, m.order), "server:i1234 is a server"},
		{"a key that has ended", signedBy(t, personKey(2), NamespaceOrder, m.order), "2026-11-01"},
		{"a key for something else", signedBy(t, personKey(3), NamespaceOrder, m.order), "muster-order"},
		{"another namespace", signedBy(t, personKey(1), "file", m.order), "muster-order"},
		{"another order", signedBy(t, personKey(1), NamespaceOrder, []byte("{}")), "message"},
		{"a stranger", signedBy(t, personKey(9), NamespaceOrder, m.order), "in no line"},
		{"no signature", "x", "want"},
	} {
		v, err := by.Vote(m.order, x.text)
		switch {
		case x.words == "" && (err != nil || len(v.Names) != 2 || v.Names[1] != "user:ann" || v.Text != x.text):
			t.Errorf("%s: %+v, %v", x.name, v, err)
		case x.words != "" && (err == nil || !strings.Contains(err.Error(), x.words)):
			t.Errorf("%s: %v, want words with %q", x.name, err, x.words)
		}
	}
}

// A second signature by the same key replaces the first one.
func TestAVoteIsAddedOnce(t *testing.T) {
	t.Parallel()
	k := keysFrom(t, "i1234", 1)
	by := signersOf(t, k, map[byte]string{1: "os:ann", 2: "os:bob"})
	m := orderFor(t, jobs.Spec{Runbook: "exec", Operator: "os:cem"}, "fw1")
	list := []string{signedBy(t, k.Signer(serverkey.Orders), NamespaceOrder, m.order)}
	for i, n := range []byte{1, 2, 1} {
		v, err := by.Vote(m.order, signedBy(t, personKey(n), NamespaceOrder, m.order))
		if err == nil {
			list, err = v.AddTo(list)
		}
		if want := min(i+2, 3); err != nil || len(list) != want {
			t.Errorf("vote %d: %d signatures, %v, want %d", i+1, len(list), err, want)
		}
	}
	if names := by.SignedBy(m.order, list); strings.Join(names, " ") != "os:bob os:ann" {
		t.Errorf("signed by %q", names)
	}
	full := list
	for len(full) < signaturesMax {
		full = append(full, "x")
	}
	v, _ := by.Vote(m.order, signedBy(t, personKey(2), NamespaceOrder, m.order))
	if got, err := v.AddTo(full); err != nil || len(got) != signaturesMax {
		t.Errorf("a vote again in a full list: %d, %v", len(got), err)
	}
	if _, err := (Vote{Key: "other"}).AddTo(full); err == nil {
		t.Error("a full list took one more")
	}
}

// The host with the strictest rule decides how many people are missing.
func TestThePolicySaysHowManyPeopleAreMissing(t *testing.T) {
	t.Parallel()
	k := keysFrom(t, "i1234", 1)
	by := signersOf(t, k, map[byte]string{1: "os:ann", 2: "os:bob", 3: "os:cem"})
	m := orderFor(t, jobs.Spec{Runbook: "exec", Operator: "os:ann"}, "fw1", "fw2")
	policy := policyOf(t, `  - {hosts: fw1, people: 2, mode: require}
  - {hosts: fw3, people: 9, mode: off}
  - {level: person, mode: warn}`)
	var deeds []Deed
	for _, name := range []string{"fw1", "fw2"} {
		host := hostNamed(name)
		record, err := RecordOf(host)
		if err != nil {
			t.Fatal(err)
		}
		deeds = append(deeds, Deed{Installation: "i1234", Job: jobs.NewID("0000000001", name), Zone: "default",
			Host: host, Record: record, Now: noon})
	}
	list := []string{signedBy(t, k.Signer(serverkey.Orders), NamespaceOrder, m.order)}
	for _, x := range []struct {
		signs     byte // 0: nobody more
		all, easy int  // of both hosts, of fw2 alone
	}{{0, 2, 1}, {1, 2, 0}, {2, 1, 0}, {2, 1, 0}, {3, 0, 0}} {
		if x.signs > 0 {
			list = append(list, signedBy(t, personKey(x.signs), NamespaceOrder, m.order))
		}
		s, err := Examine(m.order, list, by)
		if err != nil {
			t.Fatal(err)
		}
		all, e1 := policy.Short(s, deeds)
		easy, e2 := policy.Short(s, deeds[1:])
		if all != x.all || easy != x.easy || e1 != nil || e2 != nil {
			t.Errorf("after %d: %d and %d are missing, %v, %v; want %d and %d", x.signs, all, easy, e1, e2, x.all,
				x.easy)
		}
	}
	s, err := Examine(m.order, list, by)
	if err != nil {
		t.Fatal(err)
	}
	deeds[1].Host.Port = 23
	if _, err := policy.Short(s, deeds); err == nil || !strings.Contains(err.Error(), "fw2 is not as it was signed") {
		t.Errorf("a host that has changed: %v", err)
	}
}
