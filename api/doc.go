// Package api describes the data that goes over HTTP between the command line and a server: the
// bodies of requests and of answers, the names of headers and of events. Both sides import it, so
// that neither has to import the other.
//
// Times are RFC 3339 in UTC with milliseconds. Outcomes list every outcome, zeros too. Errors
// are RFC 9457 problems, in which errors[] names every mistake at once.
//
// The package has no behaviour apart from a few words for people. It imports fleet because
// the inventory goes over the wire as it is.
//
// Floor 2: may import fleet, jobs and windows, and nothing else of the house.
package api
