package server_test

import (
	"strings"

	"muster/access"
)

// verbsOf has each route with the verb that it asks for. A star is before those that also serve
// callers whose rights end at some hosts.
var verbsOf = map[string]string{
	"": sessionRoutes + `*GET /v1/health
*GET /v1/whoami
*GET /v1/tokens
*POST /v1/apply
*POST /v1/tokens
*DELETE /v1/tokens/{name}`,
	"see": `*GET /v1/tasks
*GET /v1/tasks/{task}
*GET /v1/tasks/{task}/jobs
*GET /v1/tasks/{task}/waits
*GET /v1/tasks/{task}/summary
*GET /v1/tasks/{task}/summaries
*GET /v1/tasks/{task}/output
*GET /v1/tasks/{task}/report
*GET /v1/approvals
*GET /v1/approvals/{task}
*POST /v1/approvals/{task}
*DELETE /v1/approvals/{task}
*DELETE /v1/approvals/{task}/signature
*GET /v1/jobs/{job}
*GET /v1/jobs/{job}/output
*GET /v1/jobs/{job}/course
*GET /v1/hosts
*POST /v1/hosts/query
*GET /v1/hosts/{host}
*GET /v1/hosts/{host}/next
*GET /v1/hosts/{host}/windows
*GET /v1/runbooks
*GET /v1/runbooks/{runbook}
GET /v1/plan/calibration
GET /v1/triggers
GET /v1/triggers/{trigger}
POST /v1/triggers/test
GET /v1/repositories
*GET /v1/firings
GET /metrics
GET /v1/inventory
*GET /v1/facts
*GET /v1/groups
*GET /v1/limits
GET /v1/blobs
GET /v1/blobs/{sum}
*GET /v1/queue
*GET /v1/queue/depth
GET /v1/nodes
GET /v1/upgrade
*GET /v1/events
*GET /v1/pauses
*GET /v1/rollouts
*GET /v1/gates
*GET /v1/lanes
*GET /v1/dnssec
*GET /v1/chains
*GET /v1/chains/{chain}
*GET /v1/windows
*GET /v1/calendar
*GET /v1/windows/{window}/next
*GET /v1/entries
*GET /v1/quarantine
GET /v1/applies
GET /v1/applies/{apply}
*GET /v1/schedules
*GET /v1/schedules/{schedule}
*GET /v1/schedules/{schedule}/next
*GET /v1/history
GET /v1/history/state
*GET /v1/history/export
*GET /v1/history/events
GET /v1/agreed
GET /v1/reviews
*GET /v1/inbox
*GET /v1/inbox/{event}
*GET /v1/inbox/{event}/replay
GET /v1/ingress
*GET /v1/notify/messages
*GET /v1/notify/messages/{message}
GET /v1/notify/receivers`,
	"plan": `*POST /v1/plan
*GET /v1/plan/openings`,
	"run": `*POST /v1/tasks
*POST /v1/tasks/{task}/retry
*PUT /v1/blobs/{sum}
POST /v1/schedules
*POST /v1/schedules/{schedule}/run`,
	"order": `*POST /v1/tasks/{task}/cancel
*POST /v1/inbox
*POST /v1/inbox/{event}/replay
*POST /v1/tasks/{task}/pause
*POST /v1/tasks/{task}/resume
*POST /v1/tasks/{task}/facts
*POST /v1/tasks/{task}/rollout/stop
*POST /v1/tasks/{task}/rollout/next
*POST /v1/tasks/{task}/lane/continue
*POST /v1/tasks/{task}/gates/open
*POST /v1/tasks/{task}/gates/refuse
*POST /v1/jobs/{job}/ask
*POST /v1/hosts/drain
*POST /v1/hosts/undrain
*POST /v1/hosts/quarantine
*POST /v1/hosts/unquarantine
*POST /v1/hosts/{host}/release
*POST /v1/hosts/{host}/clear
*POST /v1/customers/{customer}/pause
*POST /v1/customers/{customer}/resume
*POST /v1/groups/{group}/clear
POST /v1/nodes/{node}/pause
POST /v1/nodes/{node}/resume
POST /v1/zones/{zone}/pause
POST /v1/zones/{zone}/resume
POST /v1/zones/{zone}/thaw
POST /v1/halt
POST /v1/lift
*POST /v1/chains/{chain}/next
*POST /v1/chains/{chain}/undo
POST /v1/freezes
*POST /v1/windows/propose
POST /v1/freezes/{freeze}/lift
*POST /v1/schedules/{schedule}/pause
*POST /v1/schedules/{schedule}/resume
*POST /v1/schedules/{schedule}/remove`,
	"approve": `*POST /v1/windows/{window}/approve
*POST /v1/approvals/{approval}/withdraw
POST /v1/reviews/{task}`,
	"author": `DELETE /v1/blobs/{sum}`,
	"admin": `PUT /v1/windows
POST /v1/windows/adopt
POST /v1/zones/{zone}/fsck
POST /v1/repositories/{repository}/poll
POST /v1/agreed/restore
POST /v1/agreed/forsake
POST /v1/audit/erase
POST /v1/notify/receivers/{receiver}/test`,
	"audit": `GET /v1/audit
GET /v1/audit/state
GET /v1/audit/export
GET /v1/audit/growth
GET /v1/audit/entries/{seq}
GET /v1/audit/entries/{seq}/proof`,
}

// asked is a route with the verb that it asks for.
type asked struct {
	verb   access.Verb
	scoped bool
}

func askedOf() map[string]asked {
	all := map[string]asked{}
	for verb, lines := range verbsOf {
		for line := range strings.SplitSeq(lines, "\n") {
			route, scoped := strings.CutPrefix(line, "*")
			all[route] = asked{access.Verb(verb), scoped}
		}
	}
	return all
}
