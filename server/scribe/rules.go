package scribe

import (
	"net/http"
	"strings"
)

// A rule says which entry the requests of a route make.
type rule struct {
	verb   string
	object string // with {parameters} of the path, and of the body as {body.name}
	kind   kind
}

// kind says when the entry of a request is written.
type kind int

const (
	gives   kind = iota // before the route is called
	stops               // the same, and the order counts also without an entry: it stops work
	planned             // by Ordered, once it is known what the order comes to
	asks                // never: the route changes nothing, whatever its method says
)

// The verbs of entries about broken glass, and a pattern for both. Reviews are read from them.
const (
	GlassBroken   = "glass.break"
	GlassReviewed = "glass.review"
	GlassAny      = "glass.*"
)

// rules has a row for each route that is not a GET. The test of server that walks the OpenAPI
// document fails for a route without one.
var rules = map[string]rule{
	"POST /v1/tasks":                        {"task.submit", "task/{body.id}", planned},
	"POST /v1/tasks/{task}/retry":           {"task.retry", "task/{task}", planned},
	"POST /v1/approvals/{task}":             {"approval.give", "task/{task}", gives},
	"DELETE /v1/approvals/{task}":           {"approval.refuse", "task/{task}", planned},
	"DELETE /v1/approvals/{task}/signature": {"approval.withdraw", "task/{task}", planned},

	"POST /v1/reviews/{task}": {GlassReviewed, "task/{task}", planned},
	"POST /v1/jobs/{job}/ask": {"job.ask", "job/{job}", gives},
	"POST /v1/plan":           {"", "", asks},
	"POST /v1/triggers/test":  {"", "", asks},

	"POST /v1/tasks/{task}/cancel":        {"task.cancel", "task/{task}", stops},
	"POST /v1/tasks/{task}/pause":         {"task.pause", "task/{task}", stops},
	"POST /v1/tasks/{task}/resume":        {"task.resume", "task/{task}", gives},
	"POST /v1/tasks/{task}/facts":         {"facts.read", "task/{task}", gives},
	"POST /v1/tasks/{task}/rollout/stop":  {"rollout.stop", "task/{task}", stops},
	"POST /v1/tasks/{task}/lane/continue": {"lane.continue", "task/{task}", gives},
	"POST /v1/tasks/{task}/rollout/next":  {"rollout.next", "task/{task}", gives},

	"POST /v1/tasks/{task}/gates/open":   {"gate.open", "task/{task}", gives},
	"POST /v1/tasks/{task}/gates/refuse": {"gate.refuse", "task/{task}", stops},

	"POST /v1/customers/{customer}/pause":  {"customer.pause", "customer/{customer}", stops},
	"POST /v1/customers/{customer}/resume": {"customer.resume", "customer/{customer}", gives},
	"POST /v1/zones/{zone}/pause":          {"zone.pause", "zone/{zone}", stops},
	"POST /v1/zones/{zone}/resume":         {"zone.resume", "zone/{zone}", gives},
	"POST /v1/nodes/{node}/pause":          {"node.pause", "node/{node}", stops},
	"POST /v1/nodes/{node}/resume":         {"node.resume", "node/{node}", gives},
	"POST /v1/zones/{zone}/thaw":           {"zone.thaw", "zone/{zone}", gives},
	"POST /v1/zones/{zone}/fsck":           {"zone.fsck", "zone/{zone}", gives},
	"POST /v1/halt":                        {"halt", "", stops},
	"POST /v1/lift":                        {"lift", "", gives},

	"POST /v1/groups/{group}/clear": {"group.clear", "group/{group}", gives},
	"POST /v1/hosts/drain":          {"host.drain", "hosts/{body.on}", stops},
	"POST /v1/hosts/undrain":        {"host.undrain", "hosts/{body.on}", gives},
	"POST /v1/hosts/{host}/release": {"host.release", "host/{host}", gives},
	"POST /v1/hosts/{host}/clear":   {"host.clear", "host/{host}", gives},
	"POST /v1/hosts/quarantine":     {"host.quarantine", "hosts/{body.on}", stops},
	"POST /v1/hosts/unquarantine":   {"host.unquarantine", "hosts/{body.on}", gives},
	"POST /v1/hosts/query":          {"", "", asks},

	"POST /v1/chains/{chain}/next": {"chain.next", "chain/{chain}", gives},
	"POST /v1/chains/{chain}/undo": {"chain.undo", "chain/{chain}", gives},

	"PUT /v1/windows":                        {"windows.apply", "", gives},
	"POST /v1/windows/adopt":                 {"windows.adopt", "", gives},
	"POST /v1/windows/propose":               {"window.propose", "window/{body.name}", gives},
	"POST /v1/windows/{window}/approve":      {"window.approve", "window/{window}", gives},
	"POST /v1/approvals/{approval}/withdraw": {"window.withdraw", "approval/{approval}", stops},
	"POST /v1/freezes":                       {"freeze", "freeze/{body.name}", stops},
	"POST /v1/freezes/{freeze}/lift":         {"freeze.lift", "freeze/{freeze}", gives},

	"POST /v1/apply": {"apply", "apply/{body.id}", gives},

	"POST /v1/repositories/{repository}/poll": {"repository.poll", "repository/{repository}", gives},

	"POST /v1/schedules":                   {"schedule.apply", "", gives},
	"POST /v1/schedules/{schedule}/run":    {"schedule.run", "schedule/{schedule}", planned},
	"POST /v1/schedules/{schedule}/pause":  {"schedule.pause", "schedule/{schedule}", stops},
	"POST /v1/schedules/{schedule}/resume": {"schedule.resume", "schedule/{schedule}", gives},
	"POST /v1/schedules/{schedule}/remove": {"schedule.remove", "schedule/{schedule}", stops},

	"POST /v1/agreed/restore": {"agreed.restore", "", gives},
	"POST /v1/agreed/forsake": {"agreed.forsake", "", gives},

	"PUT /v1/blobs/{sum}":    {"blob.put", "blob/{sum}", gives},
	"DELETE /v1/blobs/{sum}": {"blob.remove", "blob/{sum}", gives},

	"POST /v1/login/links":          {"login.link", "login/link", planned},
	"POST /v1/logout":               {"session.end", "session", planned},
	"DELETE /v1/sessions/{session}": {"session.end", "session/{session}", planned},

	"POST /v1/inbox":                {"event.send", "event", gives},
	"POST /v1/inbox/{event}/replay": {"event.replay", "event/{event}", gives},

	"POST /v1/notify/receivers/{receiver}/test": {"notify.test", "receiver/{receiver}", planned},

	"POST /v1/audit/erase":     {"audit.erase", "", planned},
	"POST /v1/tokens":          {"token.create", "token/{body.name}", planned},
	"DELETE /v1/tokens/{name}": {"token.remove", "token/{name}", planned},
}

// Known reports whether a route has its rule, or needs none.
func Known(method, path string) bool {
	_, known := rules[method+" "+path]
	return known || method == http.MethodGet || method == http.MethodHead
}

// ruleOf returns the rule of a route. One without a row is written down all the same, by its path.
func ruleOf(method, path string) rule {
	r, known := rules[method+" "+path]
	switch {
	case known:
		return r
	case method == http.MethodGet, method == http.MethodHead:
		return rule{kind: asks}
	}
	return rule{verb: "api." + strings.ToLower(method), object: path}
}
