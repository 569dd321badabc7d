// Package hooks is what happens around each call of Redis: a pipeline returns the error that
// matters, and the calls are counted and timed.
//
// Floor 1: may import no room.
package hooks
