// Package rights holds requests against the policy of the house: it has the row of each route that
// says which right the route needs, and refuses callers who lack it before the route is called.
//
// A route is refused to everybody unless it has a row. A caller whose grants are limited to some
// hosts or runbooks can use the routes that know of such limits; all others need the right for the
// whole house. A task, a job or a host that the caller may not see is answered as one that does not
// exist.
//
// Floor 5: may import access, jobs/queue, server/web and what is below.
package rights
