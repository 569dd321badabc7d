// Package upgrades has the command upgrade, which says how far an upgrade is, and what still runs
// the old version.
//
// Floor 6: may import cli and below.
package upgrades
