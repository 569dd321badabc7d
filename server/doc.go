// Package server is the HTTP API of muster. It also gives the duties, which exactly one server
// does at a time, what they need: server/duties and server/historian do them.
//
// A server holds no state of its own: everything is in Redis, and any number of
// servers can stand behind a load balancer. The CLI talks only to a server.
//
// It plans what a submit comes to and hands it to the queue; it runs nothing
// and reaches no host. Whoever calls over loopback or a unix socket is trusted
// as far as the machine is, everybody else needs a token and gets TLS.
//
// Floor 8: may import jobs, fleet, scripts and the doors below it.
package server
