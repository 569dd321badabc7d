package schedules

import (
	"muster/api"
	"muster/jobs"
	"muster/windows"
)

// Request returns the request of a schedule, as a person would send it.
func Request(e windows.Entry) api.Submit {
	return api.Submit{Runbook: e.Runbook, On: e.On, Args: e.Args, Expire: e.Expire,
		Priority: e.Priority,
		Manner:   api.Manner{Disruptive: e.Disruptive, Only: e.Only}, Supersedes: e.Supersedes,
		Rollout: jobs.AskOf(e.Rollout),
		// A host without an opening at a tick may have one at the next. A rule counts all hosts
		// that are selected, so it can leave none out: such a tick has no task, and names the hosts.
		Timed: api.Timed{Window: e.Window == windows.WindowRequired, Expect: e.Expect,
			SkipClosed: e.Rollout == nil}}
}
