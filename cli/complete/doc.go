// Package complete offers the words that a shell completes: tasks, jobs, hosts, runbooks. It
// asks the server, and says nothing if that is away.
//
// Floor 4: may import cli and below.
package complete
