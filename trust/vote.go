package trust

import (
	"fmt"
	"slices"

	"muster/internal/sshsig"
)

// A Vote is the signature of a person over an order. Only Signers.Vote makes one.
type Vote struct {
	Text  string
	Key   string   // the fingerprint of the key
	Names []string // of the person, as allowed_signers has them
}

// Vote checks the signature of a person over the bytes of an order. The error says why it does not
// count.
func (s Signers) Vote(order []byte, text string) (Vote, error) {
	sig, names, err := s.check(text, NamespaceOrder, order)
	if err != nil {
		return Vote{}, err
	}
	if i := slices.IndexFunc(names, isServer); i >= 0 {
		return Vote{}, fmt.Errorf("%s is a server: a person signs with a key of their own", names[i])
	}
	return Vote{Text: text, Key: sig.Fingerprint(), Names: names}, nil
}

// FromPasskey returns the signature over the bytes of an order that a browser had made by a passkey
// of a person, as [Signers.Vote] takes it.
func (s Signers) FromPasskey(order []byte, person string, by sshsig.Assertion) (string, error) {
	return s.Allowed.FromPasskey(person, NamespaceOrder, order, by)
}

// AddTo returns the signatures of an order and the vote behind them. It replaces an earlier
// signature by the same key.
func (v Vote) AddTo(signatures []string) ([]string, error) {
	others := slices.DeleteFunc(slices.Clone(signatures), func(text string) bool {
		sig, err := sshsig.Parse([]byte(text))
		return err == nil && sig.Fingerprint() == v.Key
	})
	if len(others) >= signaturesMax {
		return nil, fmt.Errorf("the order has %d signatures, and no more are looked at", len(others))
	}
	return append(others, v.Text), nil
}

// Without returns the signatures of an order without those of a person, by any of their keys. A
// signature that does not count is of nobody, and stays.
func (s Signers) Without(order []byte, signatures []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(signatures), func(text string) bool {
		vote, err := s.Vote(order, text)
		return err == nil && slices.Contains(vote.Names, name)
	})
}

// Short returns the number of people who must still sign before the policy allows all deeds. It
// returns an error if the order does not cover one of them, whoever signs it.
func (p *Policy) Short(s *Standing, deeds []Deed) (people int, err error) {
	for _, d := range deeds {
		if err := s.Covers(d); err != nil {
			return 0, err
		}
		rule, err := p.ruleFor(s.Spec.Runbook, d.Host)
		if err != nil {
			return 0, err
		}
		if want, have := s.counts(rule.Level); rule.Mode != Off && !s.breaks(rule) {
			people = max(people, want-have)
		}
	}
	return people, nil
}

// SignedBy returns a name of each person whose signature over an order counts. The signature of a
// key that is in no line of allowed_signers, or may not sign now, counts for nobody.
func (s Signers) SignedBy(order []byte, signatures []string) []string {
	names := []string{}
	standing, err := Examine(order, signatures, s)
	if err != nil {
		return names
	}
	for _, person := range standing.People {
		names = append(names, person[0])
	}
	return names
}
