// Package notices has the command notify: it lists and shows notifications and their receivers,
// tries a receiver, and checks a file of rules.
//
// Floor 6: may import api, cli, cli/complete, notify and what is below.
package notices
