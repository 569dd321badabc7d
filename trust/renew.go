package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/serverkey"
	"muster/internal/sshsig"
	"muster/internal/wording"
)

// renewBefore is the time before the end of an order from which servers renew it.
const renewBefore = Validity / 2

// errPeople says that only people could sign an order anew.
var errPeople = errors.New("people have signed the order, so servers cannot renew it")

// SignerLine returns the line of allowed_signers for a key of the servers.
func SignerLine(installation, key string) string {
	return fmt.Sprintf("%s%s namespaces=\"%s,%s,%s\" %s", ServerPrefix, installation, NamespaceOrder,
		NamespaceGate, NamespaceTimes, key)
}

// PasskeyLine returns the line of allowed_signers for a passkey of a person. spki and site are
// as in sshsig.PasskeyText. A name that the file would read as another one, or as two, is an error.
func PasskeyLine(person string, spki []byte, site string) (string, error) {
	text, err := sshsig.PasskeyText(spki, site)
	if err != nil {
		return "", err
	}
	line := person + ` namespaces="` + NamespaceOrder + `" ` + text
	allowed, err := sshsig.ParseAllowed([]byte(line))
	if err != nil {
		return "", fmt.Errorf("the name %s cannot stand in allowed_signers: %w", wording.Quote(person),
			err)
	}
	lines := allowed.Lines(NamespaceOrder, time.Time{})
	if len(lines) != 1 || !slices.Equal(lines[0].Names, []string{person}) {
		return "", fmt.Errorf("the name %s would be another one in allowed_signers",
			wording.Quote(person))
	}
	return line, nil
}

// ServersOf returns the servers with these keys as those whose signatures count.
func ServersOf(k serverkey.Keys, now time.Time) (Signers, error) {
	var text strings.Builder
	for _, public := range k.Publics(serverkey.Orders) {
		key, err := sshsig.KeyText(public)
		if err != nil {
			return Signers{}, err
		}
		fmt.Fprintln(&text, SignerLine(k.Installation(), key))
	}
	allowed, err := sshsig.ParseAllowed([]byte(text.String()))
	return Signers{allowed, now}, err
}

// Renew returns the same order with a later end, signed by a server, if its end is near and a
// server alone has signed it; nil: there is nothing to do. A task may be open for longer than an
// order may be good.
func Renew(order []byte, signatures []string, k serverkey.Keys, now time.Time) (renewed []byte,
	signature string, err error) {
	by, err := ServersOf(k, now)
	if err != nil {
		return nil, "", err
	}
	s, err := Examine(order, signatures, by)
	if err != nil {
		return nil, "", err
	}
	o := *s.Order
	switch {
	case o.NotAfter.Sub(now) > renewBefore:
		return nil, "", nil
	case len(signatures) > 1:
		return nil, "", errPeople
	}
	if o.NotBefore.Before(now) {
		o.NotBefore = now.UTC().Truncate(time.Second)
	}
	o.NotAfter = o.NotBefore.Add(Validity)
	if renewed, err = json.Marshal(o); err != nil {
		return nil, "", err
	}
	signature, err = SignAs(k, NamespaceOrder, renewed)
	return renewed, signature, err
}
