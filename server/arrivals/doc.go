// Package arrivals takes events from elsewhere: over the one route whose callers prove who they are
// by a signature, and by hand from people with rights; and it shows the events that are kept.
//
// Floor 6: may import ingress, jobs/queue/inbox, server/dispatch, server/web and what is below.
package arrivals
