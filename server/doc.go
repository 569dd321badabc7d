// Package server is the HTTP API of muster. It also gives the duties, which exactly one server
// does at a time, what they need: server/duties and server/historian do them.
//
// A server holds no state of its own: everything is in Redis, and any number of
// servers can stand behind a load balancer. The CLI talks only to a server.
//
// A request becomes a task in server/intake. A server runs no job
// and reaches no host. Over a unix socket the kernel names the caller; on a port each
// caller needs a token or a certificate, and beyond loopback TLS.
//
// Floor 9: may import jobs, fleet, scripts and the doors below it.
package server
