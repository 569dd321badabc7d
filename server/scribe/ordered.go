package scribe

import (
	"cmp"
	"context"

	"muster/audit"
)

// An Order is work that comes into the queue next.
type Order struct {
	Task     string // its id
	Verb     string // empty: that of the request, else task.put
	Operator string
	Proven   bool
	Schedule string // that has fired; empty: somebody asked
	Reason   string
	What     audit.Task
}

// Ordered writes the entry of work before it is put into the queue, be it for a request or for a
// duty of this server. The function that it returns writes the outcome.
func (s *Scribe) Ordered(ctx context.Context, o Order) (end func(result string), err error) {
	if s == nil {
		return func(string) {}, nil
	}
	if l := lineOf(ctx); l != nil {
		t, err := s.writeOrder(ctx, l, o)
		if err != nil {
			return nil, err
		}
		return func(result string) { s.Keep(t.outcome(result)) }, nil
	}
	return s.ofDuty(ctx, o)
}

// ofDuty is Ordered for a duty of this server. A duty repeats its order each second until Redis
// takes it. ofDuty writes one entry for all tries, and one outcome: that of the last try.
func (s *Scribe) ofDuty(ctx context.Context, o Order) (end func(result string), err error) {
	t, known := s.tries.of(o)
	if !known {
		l := &Line{verb: "task.put", who: person{name: o.Operator, proof: "standing order"}}
		if o.Schedule != "" {
			l.who = person{name: "server:schedule/" + o.Schedule, proof: "schedule"}
		}
		if !o.Proven {
			l.who.proof = proofClaimed
		}
		if t, err = s.writeOrder(ctx, l, o); err != nil {
			return nil, err
		}
		s.tries.keep(o, t)
	}
	return func(result string) {
		if result != audit.Failed {
			s.tries.forget(o)
			s.Keep(t.outcome(result))
		}
	}, nil
}

// writeOrder writes the entry of an order.
func (s *Scribe) writeOrder(ctx context.Context, l *Line, o Order) (try, error) {
	d := l.draft()
	d.Entry.Verb, d.Entry.Object = cmp.Or(o.Verb, l.verb), "task/"+o.Task
	d.Entry.Task = &o.What
	d.Private.Reason = o.Reason
	id, err := s.Write(ctx, d, false)
	return try{id: id, order: o.What.Order, draft: d}, err
}

// A Deed describes the effect of a request. The server knows it only after it has read the objects
// concerned.
type Deed struct {
	Verb, Object, Reason string
	Stops                bool // it takes power or work away; the server does it also without an entry
}

// Says writes the entry of a request whose object is known only now. The function that it returns
// writes the outcome.
func (s *Scribe) Says(ctx context.Context, does Deed) (end func(result string), err error) {
	if s == nil {
		return func(string) {}, nil
	}
	verb, object := does.Verb, does.Object
	l := lineOf(ctx)
	if l == nil {
		l = &Line{who: person{name: "server:" + s.needs.Who()}}
	}
	d := l.draft()
	d.Entry.Verb, d.Entry.Object, d.Private.Reason = verb, object, does.Reason
	id, err := s.Write(ctx, d, does.Stops)
	if err != nil {
		return nil, answerOf(err)
	}
	return func(result string) {
		out := l.outcome(verb, id, audit.End{Result: result})
		out.Entry.Object = object
		s.Keep(out)
	}, nil
}

// Own is a deed of the server itself.
type Own struct {
	Verb, Object string
	Hosts        int // that it concerns; 0: none, or it is not known
}

// Before writes that this server will do something by itself next, such as take a changed
// inventory. On an error the server must not do the deed. With must, Before returns no error when
// neither SQL nor the spool takes the entry: it keeps the entry in memory.
func (s *Scribe) Before(ctx context.Context, o Own, must bool) error {
	if s == nil {
		return nil
	}
	_, err := s.Write(ctx, s.own(o), must)
	return err
}

// Note writes that this server has done something by itself.
func (s *Scribe) Note(o Own) {
	if s != nil {
		s.Keep(s.own(o))
	}
}

func (s *Scribe) own(o Own) audit.Draft {
	d := audit.Draft{Name: "server:" + s.needs.Who(), Entry: audit.Entry{Kind: audit.KindNote,
		Verb: o.Verb, Object: o.Object}}
	if o.Hosts > 0 {
		d.Entry.Task = &audit.Task{Hosts: o.Hosts}
	}
	return d
}

// RefusedLogin writes that a caller was refused at the door, for one of few reasons.
func (s *Scribe) RefusedLogin(reason, from string) {
	if s != nil {
		s.refuse(&s.logins, audit.Draft{Private: audit.Private{From: from},
			Entry: audit.Entry{Verb: "login", Object: "login/" + reason}})
	}
}
