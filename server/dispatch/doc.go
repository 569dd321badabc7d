// Package dispatch works on the events that came from elsewhere: those of the whole house first,
// then of each customer in turns, each event until it has an end.
//
// Floor 5: may import events, ingress, jobs/queue/inbox and what is below.
package dispatch
