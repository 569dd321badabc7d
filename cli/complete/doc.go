// Package complete offers the words that a shell completes: tasks, jobs, hosts, runbooks. It asks
// the server, and offers nothing if the server is away.
//
// Floor 4: may import cli and below.
package complete
