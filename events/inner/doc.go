// Package inner makes events of what happens inside of muster: a task ended, a group froze, a
// window was missed, a host or a fact changed. It says what is in each of them, whose it is, and
// by which name it is known, so that the same happening is the same event whoever tells it.
//
// Floor 4: may import events, fleet, ingress, jobs and what is below.
package inner
