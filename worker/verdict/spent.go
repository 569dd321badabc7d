package verdict

import (
	"muster/jobs"
	"muster/scripts"
)

// SpentBefore returns the ledger of a job up to its take. The time of a lost attempt is not known
// and counts under no use.
func SpentBefore(g jobs.Grant) jobs.Ledger {
	l, err := jobs.ParseLedger(g.Spent)
	if err != nil {
		l = jobs.Ledger{} // another version wrote it: the ledger begins again
	}
	if g.Mode == jobs.ModeLost {
		l.Until, l.For = jobs.Micros(g.Token), ""
		return l
	}
	l.Waited(g.Due, jobs.Micros(g.Token))
	return l
}

// Reckoned returns the ledger with which a job ends, or waits from now on under a use.
func Reckoned(l jobs.Ledger, k jobs.Kind, use jobs.Use, now jobs.Micros) string {
	l.Until, l.For = now, use
	if k == jobs.KindEnd {
		l.Until = 0
	}
	return l.String()
}

// WaitsFor returns the use of the time between a result and the next attempt.
func WaitsFor(k jobs.Kind, step scripts.Kind) jobs.Use {
	switch {
	case k == jobs.KindDefer:
		return jobs.InWindow
	case k == jobs.KindVerify:
		return jobs.Verifying
	case k == jobs.KindBack:
		return jobs.Queueing
	case k == jobs.KindWait && Looking(step) != "":
		return Looking(step)
	}
	return jobs.Pausing
}

// Looking returns the use of the time of a step that frees its worker; empty for other steps.
func Looking(k scripts.Kind) jobs.Use {
	switch {
	case k == scripts.KindWait:
		return jobs.Pausing
	case k == scripts.KindGate:
		return jobs.AtGate
	case k.Patient():
		return jobs.Verifying
	}
	return ""
}
