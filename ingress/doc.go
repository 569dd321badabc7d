// Package ingress decides whether a message that arrives over HTTP is an event of a configured
// source: it reads the file of sources, verifies signatures over the bytes as they came, and finds
// out what tells a delivery from its repetition. It is pure: headers, bytes, secrets and time are
// arguments.
//
// Floor 3: may import events, internal/jsonpath, internal/strictyaml and what is below.
package ingress
