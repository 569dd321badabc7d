package idp

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"muster/access"
	"muster/internal/wording"
)

// A Person is somebody whom the provider has proven.
type Person struct {
	Principal string
	Groups    []string // as policies name them
	Came      []string // the names of groups that the provider has sent
	Unmapped  []string // those of them that no line of the configuration maps
	Claim     string   // in which the groups came
	None      bool     // there was no such claim
}

// person checks the token of a person, and returns the person. nonce is that of the flow; empty: it
// had none.
func (p *Provider) person(ctx context.Context, f *found, t *oauth2.Token, nonce string) (Person,
	error) {
	raw, _ := t.Extra("id_token").(string)
	if raw == "" {
		return Person{}, untrue("the provider has sent no ID token")
	}
	v := f.VerifierContext(p.asking(context.WithoutCancel(ctx)), &oidc.Config{ClientID: p.cfg.ClientID,
		SupportedSigningAlgs: algorithms, Now: p.now})
	token, err := v.Verify(p.asking(ctx), raw)
	if err != nil {
		return Person{}, untrue("%s", wording.Clip(err.Error()))
	}
	if nonce != "" && subtle.ConstantTimeCompare([]byte(nonce), []byte(token.Nonce)) != 1 {
		return Person{}, untrue("the ID token is of another login (its nonce differs)")
	}
	claims := map[string]json.RawMessage{}
	if err := token.Claims(&claims); err != nil {
		return Person{}, untrue("%s", wording.Clip(err.Error()))
	}
	var by string
	_ = json.Unmarshal(claims["azp"], &by) // absent, or not a text: it names nobody
	if by != p.cfg.ClientID && (len(token.Audience) > 1 || claims["azp"] != nil) {
		return Person{}, untrue("the ID token was made for %q (azp), not for %s alone", wording.Clip(by),
			p.cfg.ClientID)
	}
	if token.Subject == "" || len(token.Subject) > subjectMax {
		return Person{}, untrue("the ID token has no subject, or one of more than %d characters",
			subjectMax)
	}
	who := Person{Principal: Prefix + token.Issuer + "#" + token.Subject, Claim: p.cfg.GroupsClaim}
	if err := access.CheckPrincipal(who.Principal); err != nil {
		return Person{}, untrue("%s", err)
	}
	return who, p.addGroups(&who, claims)
}

// addGroups reads the groups of a person. The error is a *Refusal: a list that the provider has
// left out must not look as an empty one.
func (p *Provider) addGroups(who *Person, claims map[string]json.RawMessage) error {
	claim := p.cfg.GroupsClaim
	var elsewhere map[string]json.RawMessage
	_ = json.Unmarshal(claims["_claim_names"], &elsewhere) // absent: nothing is elsewhere
	top, _, _ := strings.Cut(claim, ".")
	_, left := elsewhere[claim]
	_, leftTop := elsewhere[top]
	if left || leftTop || string(claims["hasgroups"]) == "true" {
		return &Refusal{Groupless, fmt.Sprintf("the identity provider has left the list of groups (%s) "+
			"out, because it is too long: Entra ID does so above 200 groups. Have it emit only the groups "+
			"that are assigned to this application, or roles of the application, and name that claim in "+
			"server.oidc.groups_claim", claim)}
	}
	raw, found := lookUp(claims, claim)
	if !found {
		who.None = true
		return nil
	}
	var one string
	if json.Unmarshal(raw, &who.Came) != nil {
		if json.Unmarshal(raw, &one) != nil {
			return untrue("the claim %s is neither a list of names nor a name", claim)
		}
		who.Came = []string{one}
	}
	if len(who.Came) > groupsMax {
		return untrue("the claim %s has %d names, at most %d", claim, len(who.Came), groupsMax)
	}
	for _, name := range who.Came {
		groups := p.groups[name]
		if len(groups) == 0 || len(name) > groupLength {
			who.Unmapped = append(who.Unmapped, name)
			continue
		}
		who.Groups = append(who.Groups, groups...)
	}
	slices.Sort(who.Groups)
	who.Groups = slices.Compact(who.Groups)
	return nil
}

// lookUp returns a claim by its name. If there is none of that name, the dots in it lead into
// objects.
func lookUp(claims map[string]json.RawMessage, name string) (json.RawMessage, bool) {
	if raw, found := claims[name]; found {
		return raw, true
	}
	top, rest, deeper := strings.Cut(name, ".")
	var inside map[string]json.RawMessage
	if !deeper || json.Unmarshal(claims[top], &inside) != nil {
		return nil, false
	}
	return lookUp(inside, rest)
}
