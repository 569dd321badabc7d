// Package arrivals has the command event: it lists and shows events that came from elsewhere, and
// sends one by hand.
//
// Floor 6: may import api, cli, cli/watch, internal/files and what is below.
package arrivals
