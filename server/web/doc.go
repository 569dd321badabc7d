// Package web has the parts that all resources of the HTTP API share: who asks, the orders of
// operators, the description of a route, the answers that refuse a request, and the wait for a
// change. It knows no resource.
//
// Floor 4: may import history and jobs/queue for their errors, and what is below.
package web
