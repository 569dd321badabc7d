package metrics

import "time"

// Audit has the numbers of the audit log.
type Audit struct {
	Entries  int64
	Signed   int64 // entries that a checkpoint has
	Away     bool  // SQL does not take entries of this server
	Refusing bool  // neither does its spool
	Waiting  int   // entries of this server that are not in the tables yet
	Lost     int64
	Keyless  bool          // this server signs nothing
	Unsigned time.Duration // age of the oldest entry without a checkpoint
	Sinks    []Sink
}

// Sink is a place that gets a copy of the log.
type Sink struct {
	Sink string
	Lag  time.Duration // since when it has taken nothing; 0: it takes what comes
}

func (s *snapshot) audit(a Audit) {
	s.add("muster_audit_entries", "Entries of the audit log.", float64(a.Entries))
	s.add("muster_audit_signed_entries", "Entries of the audit log that a signed checkpoint has.",
		float64(a.Signed))
	s.add("muster_audit_unsigned_seconds", "Age of the oldest entry that no checkpoint has.",
		a.Unsigned.Seconds())
	s.add("muster_audit_keyless", "1 while this server has no key, and signs no entry.",
		number(a.Keyless))
	s.add("muster_audit_away", "1 while this server cannot write the audit log to its tables.",
		number(a.Away))
	s.add("muster_audit_refusing", "1 while this server refuses orders, because it cannot write the "+
		"audit log anywhere.", number(a.Refusing))
	s.add("muster_audit_waiting_entries", "Entries of this server that are not in the tables yet.",
		float64(a.Waiting))
	s.add("muster_audit_lost_entries", "Entries that this server could keep nowhere.", float64(a.Lost))
	for _, one := range a.Sinks {
		s.add("muster_audit_sink_lag_seconds", "Time for which a sink of the audit log has taken "+
			"nothing that it should have; 0: it takes what comes.", one.Lag.Seconds(), "sink", one.Sink)
	}
}
