// Package inbox keeps the events that came from elsewhere, and those of muster itself: it takes
// each once, gives them out by customers and classes, and keeps those that have ended for a time.
//
// Floor 4: may import events, ingress, jobs/queue and what is below.
package inbox
