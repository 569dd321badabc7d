// Package standing has the command trigger: it lists and shows triggers, says what an event would
// start, lists what triggers did, and checks a file of them.
//
// Floor 6: may import api, cli, triggers and what is below.
package standing
