package sim

// underLock judges that a step begins under the lock of its attempt, and is over before that
// ends, by the true time: also if it runs to its bound and does not heed being told to stop.
func (h *host) underLock(e *entry) {
	l := h.redis.zone.Locks[h.name]
	ends := l.Until.Sub(start) - h.redis.offset
	switch {
	case l.Job != e.job || l.Token != e.token:
		h.suspect("I12", "%s: %s begins step %d, and the lock is that of %s", h.name, e.job, e.step, l.Job)
	case ends <= h.now:
		h.suspect("I12", "%s: %s begins step %d %s behind its lock", h.name, e.job, e.step, h.now-ends)
	case ends < e.latest:
		h.suspect("I12", "%s: step %d of %s may run until %s, its lock ends at %s", h.name, e.step, e.job,
			e.latest, ends)
	}
}
