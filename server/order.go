package server

import "github.com/hashicorp/go-hclog"

// Whose is part of the input of those orders that need no name to be carried out: it is
// logged who gave them, as far as that is known.
type Whose struct {
	Asked
	User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
}

// note logs an order that was carried out.
func (w Whose) note(log hclog.Logger, done string, more ...any) {
	name, proven, err := operator(w.who, "", w.User)
	if err != nil { // the name that was sent is no name, or another's
		name, proven = w.who.name, w.who.name != ""
	}
	log.Info(done, append(more, "operator", name, "proven", proven)...)
}
