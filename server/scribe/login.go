package scribe

import (
	"context"

	"muster/audit"
)

// A Login is somebody who begins a session.
type Login struct {
	Name  string // the principal
	Proof string // what proves it, such as socket, or oidc
	Way   string // link, oidc, …
	From  string // address
}

// LoggedIn writes the entry of a login before its session begins. The function that it returns
// writes the outcome.
func (s *Scribe) LoggedIn(ctx context.Context, in Login) (end func(result string), err error) {
	if s == nil {
		return func(string) {}, nil
	}
	l := &Line{who: person{in.Name, in.Proof, in.From}, verb: "login", object: "login/" + in.Way}
	id, err := s.Write(ctx, l.draft(), false)
	if err != nil {
		return nil, answerOf(err)
	}
	return func(result string) { s.Keep(l.outcome(l.verb, id, audit.End{Result: result})) }, nil
}
