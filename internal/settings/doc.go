// Package settings reads the configuration: etc/muster.yaml, MUSTER_… variables
// and flags, in this order, the later ones winning.
//
// It is the only package, beside cmd, that knows where configuration comes from;
// everything below gets its Config as a value. Every mistake is reported at once,
// with the place where it stands.
//
// Floor 10: may import everything below cmd.
package settings
