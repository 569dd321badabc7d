// Package triggers decides what starts when something happens elsewhere: it reads the file of
// triggers, holds an event against each of them, and says which task would be submitted, or why
// none. It is pure: the event, the time, the hosts and what is remembered are arguments.
//
//	set, err := triggers.Parse(fleet.Source{Name: "triggers.yaml", Data: data})
//	for _, d := range set.Decide(event, memory) {
//		fmt.Println(d.Trigger, d.Result, d.Why)
//	}
//
// An event carries data and never an order. A value of it can only become the value of an
// argument, the exact name of a host or the exact value of a label; the hosts that are meant are
// then searched among those that the selector of the file picks. So no event can widen a
// selector, whatever is in it.
//
// Floor 3: may import events, jobs, windows, internal/jsonpath, internal/strictyaml and what is
// below.
package triggers
