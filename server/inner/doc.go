// Package inner tells muster's own events to the inbox, where triggers wait for them. An event and
// the place up to which the server has looked are written in one step of Redis: a server that dies
// anywhere loses nothing, and its successor tells nothing twice.
//
// Floor 5: may import events/inner, jobs/queue/inbox, jobs/queue/read, jobs/queue/versions and what
// is below.
package inner
