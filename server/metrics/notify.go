package metrics

import "time"

// Notify has the numbers of notifications.
type Notify struct {
	Refused  bool // the file of rules has mistakes
	Messages []Messages
}

// Messages are those to one receiver in one state.
type Messages struct {
	Receiver, State string
	Count           int
	Oldest          time.Duration // age of the oldest one that waits
}

func (s *snapshot) notify(n Notify) {
	s.add("muster_notify_rules_refused", "1 while the file of notifications has mistakes, and "+
		"earlier rules are in force, or none.", number(n.Refused))
	for _, m := range n.Messages {
		s.add("muster_notify_messages", "Notifications that are kept, by receiver and state. Those that "+
			"were delivered or given up are forgotten after 14 days.", float64(m.Count), "receiver",
			m.Receiver, "state", m.State)
		if m.Oldest > 0 {
			s.add("muster_notify_waiting_seconds", "Age of the oldest notification that waits for a "+
				"receiver.", m.Oldest.Seconds(), "receiver", m.Receiver)
		}
	}
}
