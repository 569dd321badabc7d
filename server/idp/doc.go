// Package idp asks an identity provider who somebody is, by OpenID Connect: with a browser by the
// code flow, without one by the device grant. It believes what the provider has signed for this
// server, and nothing else. Nobody is known by an address of mail: a person is the issuer and the
// subject that it has for them.
//
// Floor 4: may import access and what is below.
package idp
