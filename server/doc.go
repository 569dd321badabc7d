// Package server is the HTTP API of muster. It also gives the duties, which exactly one server
// does at a time, what they need: server/duties and server/historian do them.
//
// A server holds no state of its own: everything is in Redis, and any number of
// servers can stand behind a load balancer. The CLI talks only to a server.
//
// A request becomes a task in server/intake. A server runs no job
// and reaches no host. A caller over loopback or a unix socket is trusted
// as far as the machine is; all others need a token and get TLS.
//
// Floor 8: may import jobs, fleet, scripts and the doors below it.
package server
