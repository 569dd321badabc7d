package web

import (
	"strings"

	"github.com/hashicorp/go-hclog"

	"muster/api"
)

// Order is the part that the inputs of all orders have: the operator and the reason. It is
// exported because the API library reads only exported parts.
type Order struct {
	Asked
	User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
	Body *api.OrderRequest
}

// A Giver is the operator who gives an order, with the reason and a word for the deed.
type Giver struct {
	Done   string // paused, resumed, …
	Name   string
	Proven bool // a token or the kernel says the name
	Reason string
}

// Note returns a sentence with the deed, the operator and the reason. Redis keeps it, and it
// becomes the error of jobs.
func (g Giver) Note() string {
	text := g.Done + " by " + g.Name
	if !g.Proven {
		text += " (unproven)"
	}
	if g.Reason != "" {
		text += ": " + g.Reason
	}
	return text
}

// Giver returns the operator and the reason of an order, or its mistakes.
func (o Order) Giver(done string) (Giver, []error) {
	var b api.OrderRequest
	if o.Body != nil {
		b = *o.Body
	}
	return GiverOf(b, done, o.who, o.User)
}

// GiverOf returns the operator and the reason of an order whose body is b, or its mistakes.
func GiverOf(b api.OrderRequest, done string, who Caller, user string) (Giver, []error) {
	name, proven, err := Operator(who, b.As, user)
	return Giver{done, name, proven, strings.TrimSpace(b.Reason)}, Mistakes("body.as", err)
}

// Reasoned is Giver for an order that undoes a precaution. It needs a reason, for the people who
// read the log later.
func (o Order) Reasoned(done string) (Giver, []error) {
	g, wrong := o.Giver(done)
	if g.Reason == "" {
		wrong = append(wrong, Mistake("body.reason",
			"a reason is needed: say why it is safe now, for those who read it later"))
	}
	return g, wrong
}

// Whose is the part of the input of orders that need no name. The log gets the operator, as far
// as the server knows one.
type Whose struct {
	Asked
	User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
}

// Note logs an order after it was carried out.
func (w Whose) Note(log hclog.Logger, done string, more ...any) {
	name, proven, err := Operator(w.who, "", w.User)
	if err != nil { // the name that was sent is no name, or another's
		name, proven = w.who.Name, w.who.Name != ""
	}
	log.Info(done, append(more, "operator", name, "proven", proven)...)
}

// LogOrder logs a deed with the operator who ordered it.
func LogOrder(log hclog.Logger, done string, g Giver, more ...any) {
	log.Info(done, append(more, "operator", g.Name, "proven", g.Proven, "reason", g.Reason)...)
}
