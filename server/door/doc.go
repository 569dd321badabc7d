// Package door decides who comes in: it identifies the caller of a request by a token, a session,
// a certificate or what the kernel says of a unix socket, and refuses everybody else. It counts and
// logs those.
//
// Floor 8: may import server/sessions, server/tokens, server/web and what is below.
package door
