// Package applies has the commands apply and export: they put files with entries of all kinds in
// force, show what was applied, and write what is in force.
//
// Floor 6: may import api, cli, windows and what is below.
package applies
