package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/access"
	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server"
	"muster/server/rights"
	"muster/testkit/redistest"
)

// twoCustomers are hosts of acme and of bolt.
func twoCustomers() []fleet.Host {
	var list []fleet.Host
	for i, name := range []string{"fw-a1", "fw-a2", "fw-b1", "fw-b2"} {
		customer := map[byte]string{'a': "acme", 'b': "bolt"}[name[3]]
		list = append(list, fleet.Host{Name: name, Zone: "default", Customer: customer, User: "root", Port: 22,
			Address: fmt.Sprintf("10.0.0.%d", i+1), Fence: fleet.FenceNone, Labels: map[string]string{"site": "x"}})
	}
	return list
}

// rolesPolicy gives each built-in role to a user of its name, for all hosts and for those of acme.
func rolesPolicy() string {
	text := "who:\n  - {principal: os:root, roles: [admin]}\n"
	for _, role := range access.Roles() {
		text += fmt.Sprintf("  - {principal: user:%s, roles: [%s]}\n", role, role)
		text += fmt.Sprintf("  - {principal: user:%s-acme, roles: [%s], hosts: customer=acme}\n", role, role)
	}
	return text + `  - {principal: user:label-acme, roles: [operator], hosts: customer=acme, runbooks: [label]}
  - {principal: user:label, roles: [operator], runbooks: [label]}
  - {principal: user:seer, roles: [viewer]}
  - {principal: user:seer, roles: [operator], hosts: customer=acme}
`
}

// guarded starts a server with two customers and all roles.
func guarded(t *testing.T) *world {
	t.Helper()
	policy := policyOf(t, rolesPolicy())
	return start(t, setup{inventory: fixed(twoCustomers()), more: func(d *server.Deps) { d.Policy = policy }})
}

// status makes a request with a token, and returns the status without waiting for the end of a stream.
func (w *world) status(method, path, token string) int {
	w.t.Helper()
	res := w.openAs(w.t.Context(), method, path, token)
	res.Body.Close()
	return res.StatusCode
}

// openAs makes a request with a token, and returns the answer, whose body may be a stream.
func (w *world) openAs(ctx context.Context, method, path, token string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// A new route is refused to everybody but admins until somebody has said which right it asks for, here
// and in its row.
func TestEveryRouteNeedsARight(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	d, all := document{}, askedOf()
	w.call("GET", "/openapi.json", nil, &d)
	for path, methods := range d.Paths {
		for method := range methods {
			route := strings.ToUpper(method) + " " + path
			if _, known := all[route]; !known || !rights.Known(strings.ToUpper(method), path) {
				t.Errorf("%s: nobody has said which right it asks for", route)
			}
			delete(all, route)
		}
	}
	if len(all) > 0 {
		t.Errorf("there are no such routes: %v", all)
	}
}

// Each route × each role × own and foreign customer: nobody gets in without the verb, and a role that
// ends at the hosts of acme reaches nothing else.
func TestNoRoleReachesFurtherThanItsGrants(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	own, foreign := w.submit(run("fw-a[1,2]")).Task, w.submit(run("fw-b1")).Task
	fill := func(task jobs.TaskID, host, customer string) *strings.Replacer {
		return strings.NewReplacer("{task}", string(task), "{job}", string(task)+":"+host, "{host}", host,
			"{customer}", customer, "{runbook}", "exec", "{name}", "nobody", "{sum}", strings.Repeat("0", 64), "{seq}", "1",
			"{group}", "none", "{zone}", "nowhere", "{window}", "none", "{schedule}", "none", "{chain}", "0000000000",
			"{freeze}", "none", "{apply}", "none", "{approval}", "none",
			"{message}", "none", "{receiver}", "none", "{trigger}", "none", "{repository}", "none", "{event}", "none")
	}
	ours, theirs := fill(own, "fw-a1", "acme"), fill(foreign, "fw-b1", "bolt")
	for _, role := range access.Roles() {
		whole, acme := w.token(role), w.token(role+"-acme")
		for route, a := range askedOf() {
			method, path, _ := strings.Cut(route, " ")
			has := a.verb == "" || slices.Contains(access.RoleVerbs(role), a.verb)
			for _, c := range []struct {
				who, token, path string
				may              bool
			}{
				{role, whole, ours.Replace(path), has},
				{role, whole, theirs.Replace(path), has},
				{role + " of acme", acme, ours.Replace(path), has && a.scoped},
			} {
				if got := w.status(method, c.path, c.token); (got != 403) != c.may {
					t.Errorf("%s: %s %s: %d", c.who, method, c.path, got)
				}
			}
			if !strings.ContainsAny(path, "{") || path == "/v1/runbooks/{runbook}" || strings.Contains(path, "{name}") ||
				strings.Contains(path, "{sum}") || strings.Contains(path, "{window}/approve") {
				continue
			}
			want := []int{404}
			if !a.scoped || !has || strings.Contains(path, "{customer}") {
				want = []int{403, 404}
			}
			if got := w.status(method, theirs.Replace(path), acme); !slices.Contains(want, got) {
				t.Errorf("%s of acme, at bolt's: %s %s: %d, want one of %v", role, method, theirs.Replace(path), got, want)
			}
		}
	}
}

// No answer that an operator of acme gets shows whether bolt has hosts and tasks.
func TestWhatACallerMayNotSeeDoesNotExist(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	own, foreign := w.submit(run("fw-a1")).Task, w.submit(run("fw-b1")).Task
	both := w.submit(run("all")).Task
	header := bearing(w.token("operator-acme"))
	ask := func(method, path string, body any) string {
		t.Helper()
		res, text := w.raw(method, path, body, header)
		return res.Status + " " + string(text)
	}
	for name, path := range map[string][2]string{
		"task":    {"/v1/tasks/" + string(foreign), "/v1/tasks/0000000000"},
		"both":    {"/v1/tasks/" + string(both), "/v1/tasks/0000000000"},
		"jobs":    {"/v1/tasks/" + string(foreign) + "/jobs", "/v1/tasks/0000000000/jobs"},
		"job":     {"/v1/jobs/" + string(foreign) + ":fw-b1", "/v1/jobs/0000000000:fw-b1"},
		"output":  {"/v1/jobs/" + string(foreign) + ":fw-b1/output", "/v1/jobs/0000000000:fw-b1/output"},
		"host":    {"/v1/hosts/fw-b1", "/v1/hosts/fw-c1"},
		"windows": {"/v1/hosts/fw-b1/windows", "/v1/hosts/fw-c1/windows"},
		"hosts":   {"/v1/hosts?on=fw-b1", "/v1/hosts?on=fw-c1"},
		"earlier": {"/v1/hosts?on=task:" + string(foreign), "/v1/hosts?on=task:0000000000"},
		"label":   {"/v1/hosts?on=customer%3Dbolt", "/v1/hosts?on=customer%3Dcolt"},
	} {
		hidden := strings.NewReplacer(string(foreign), "ID", string(both), "ID", "fw-b1", "HOST", "bolt", "NAME").
			Replace(ask("GET", path[0], nil))
		none := strings.NewReplacer("0000000000", "ID", "fw-c1", "HOST", "fw-b1", "HOST", "colt", "NAME").
			Replace(ask("GET", path[1], nil))
		if hidden != none {
			t.Errorf("%s: what is hidden and what is not there differ:\n%s\n%s", name, hidden, none)
		}
	}
	for _, path := range []string{"/v1/hosts", "/v1/tasks", "/v1/tasks/" + string(own), "/v1/hosts?on=all", "/v1/runbooks",
		"/v1/whoami", "/v1/hosts/fw-a1", "/v1/tokens"} {
		if said := ask("GET", path, nil); strings.Contains(said, "fw-b") || strings.Contains(said, "bolt") ||
			strings.Contains(said, string(foreign)) || !strings.HasPrefix(said, "200") ||
			path != "/v1/hosts/fw-a1" && strings.Contains(said, string(both)) { // its job on that host is seen
			t.Errorf("%s tells %s", path, said)
		}
	}
	if said := ask("GET", "/v1/hosts", nil); !strings.Contains(said, `"total":2`) {
		t.Errorf("hosts: %s", said)
	}
	if said := ask("GET", "/v1/tasks", nil); !strings.Contains(said, string(own)) {
		t.Errorf("tasks: %s", said)
	}
	dry := run("all")
	dry.DryRun = true
	if said := ask("POST", "/v1/tasks", dry); !strings.Contains(said, `"hosts":"fw-a[1-2]"`) {
		t.Errorf("all hosts are %s", said)
	}
	mixed := run("fw-a1,fw-b1")
	if said := ask("POST", "/v1/tasks", mixed); !strings.HasPrefix(said, "422") || !strings.Contains(said, "fw-b1") {
		t.Errorf("a foreign host: %s", said)
	}
	stolen := run("fw-a1")
	stolen.ID = string(foreign)
	if said := ask("POST", "/v1/tasks", stolen); !strings.HasPrefix(said, "409") || strings.Contains(said, "fw-b1") {
		t.Errorf("the id of a foreign task: %s", said)
	}
}

// A task that touches one host too many is refused whole, with their number; --allowed-only keeps the
// others.
func TestATaskOnOneHostTooManyIsRefusedWhole(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	header := bearing(w.token("seer"))
	res, text := w.raw("POST", "/v1/tasks", run("all"), header)
	if res.StatusCode != 403 ||
		!strings.Contains(string(text), "user:seer may not run exec on 2 of 4 hosts: fw-b1, fw-b2") ||
		!strings.Contains(string(text), "who may grant it: os:root") {
		t.Errorf("%s %s", res.Status, text)
	}
	if list, err := w.queue.Tasks(t.Context(), 10); err != nil || len(list) > 0 {
		t.Errorf("there are tasks: %v, %v", list, err)
	}
	some := run("all")
	some.AllowedOnly = true
	res, text = w.raw("POST", "/v1/tasks", some, header)
	var made api.Submitted
	if err := json.Unmarshal(text, &made); err != nil || res.StatusCode != 201 || made.Total != 2 {
		t.Errorf("allowed only: %s %s", res.Status, text)
	}
	none := run("fw-b1")
	none.AllowedOnly = true
	if res, text = w.raw("POST", "/v1/tasks", none, header); res.StatusCode != 403 {
		t.Errorf("no host is allowed: %s %s", res.Status, text)
	}
	if res, text = w.raw("POST", "/v1/hosts/drain", map[string]any{"on": "all"}, header); res.StatusCode != 403 ||
		!strings.Contains(string(text), "2 of 4 hosts") {
		t.Errorf("drain: %s %s", res.Status, text)
	}
}

// A rollout's health check is work, too: it needs the right to run that runbook.
func TestAHealthCheckNeedsTheRightToRunIt(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	header := bearing(w.token("label-acme"))
	task := api.Submit{Runbook: "label", On: "fw-a[1-2]", Args: map[string]string{"word": "tango"}}
	if res, text := w.raw("POST", "/v1/tasks", task, header); res.StatusCode != 201 {
		t.Fatalf("%s %s", res.Status, text)
	}
	if res, text := w.raw("POST", "/v1/tasks", run("fw-a1"), header); res.StatusCode != 403 ||
		!strings.Contains(string(text), "its grants are for other runbooks than exec") {
		t.Errorf("another runbook: %s %s", res.Status, text)
	}
	task.Rollout = &jobs.RolloutAsk{Stages: jobs.Stages{Waves: []string{"1", "100%"}, Health: "exec",
		HealthArgs: map[string]string{"cmd": "reboot"}}}
	if res, text := w.raw("POST", "/v1/tasks", task, header); res.StatusCode != 403 ||
		!strings.Contains(string(text), "run exec") {
		t.Errorf("another runbook as its check: %s %s", res.Status, text)
	}
}

// To end queued work of others, or to go on in spite of a freeze, is an order.
func TestWhatStopsOthersNeedsTheRightToOrder(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	var a api.TokenAnswer
	w.call("POST", "/v1/tokens", api.TokenRequest{Name: "run", Owner: "user:operator",
		Scope: &api.TokenScope{Verbs: []string{"see", "run"}}}, &a)
	plain, over, key := run("fw-a1"), run("fw-a1"), run("fw-a1")
	over.OverrideFreeze, key.Supersedes = "a hole", "k"
	for name, c := range map[string]struct {
		body api.Submit
		want int
	}{"plain": {plain, 201}, "over a freeze": {over, 403}, "in the place of others": {key, 403}} {
		res, text := w.raw("POST", "/v1/tasks", c.body, bearing(a.Token))
		if res.StatusCode != c.want || c.want == 403 && !strings.Contains(string(text), "may not order exec") {
			t.Errorf("%s: %s %s", name, res.Status, text)
		}
	}
}

// Without a file the user of the server and root are admins, and nobody else is anything.
func TestWithoutAFileNobodyElseIsAnything(t *testing.T) {
	t.Parallel()
	w := start(t, setup{strict: true, more: func(d *server.Deps) { d.Policy = nil }})
	token := w.token("bob")
	for _, path := range []string{"/v1/tasks", "/v1/hosts", "/v1/tokens", "/metrics", "/v1/audit", "/v1/queue"} {
		res, text := w.raw("GET", path, nil, bearing(token))
		if res.StatusCode != 403 || !strings.Contains(string(text), "no grant is for it") {
			t.Errorf("%s: %s %s", path, res.Status, text)
		}
	}
	if _, text := w.raw("GET", "/v1/health", nil, bearing(token)); strings.Contains(string(text), `"hosts":4`) {
		t.Errorf("health tells a caller without rights %s", text)
	}
	if res, text := w.raw("GET", "/v1/whoami", nil, bearing(token)); res.StatusCode != 200 {
		t.Errorf("whoami: %s %s", res.Status, text)
	}
	if res, text := w.raw("GET", "/v1/tasks", nil, nil); res.StatusCode != 200 {
		t.Errorf("the user of the server: %s %s", res.Status, text)
	}
}

// A changed policy is in force at once; one with a mistake is refused whole.
func TestAChangedPolicyIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	var text atomic.Pointer[string]
	says := func(who string) {
		all := "who:\n  - {principal: os:root, roles: [admin]}\n" + who
		text.Store(&all)
	}
	says("  - {principal: user:bob, roles: [viewer]}\n")
	var last *access.Policy
	var read string
	w := start(t, setup{strict: true, more: func(d *server.Deps) {
		d.Policy = func() (*access.Policy, error) {
			now := *text.Load()
			if now == read {
				return last, nil
			}
			p, err := access.Parse(fleet.Source{Name: "access.yaml", Data: []byte(now)})
			if err == nil {
				last, read = p, now
			}
			return p, err
		}
	}})
	token := w.token("bob")
	if got := w.status("GET", "/v1/tasks", token); got != 200 {
		t.Errorf("at first: %d", got)
	}
	says("  - {principal: user:bob, roles: [vewer]}\n")
	if got := w.status("GET", "/v1/tasks", token); got != 200 {
		t.Errorf("with a mistake in the new one: %d", got)
	}
	if !strings.Contains(w.log.String(), "access: the old policy stays") ||
		!strings.Contains(w.log.String(), "access.yaml:3") {
		t.Errorf("the log says nothing of the mistake: %s", w.log)
	}
	var h api.Health
	if w.call("GET", "/v1/health", nil, &h); !strings.Contains(h.Status, "access file is not in force") ||
		!strings.Contains(h.Status, "access.yaml:3") {
		t.Errorf("health says %q", h.Status)
	}
	if _, said := w.raw("GET", "/v1/health", nil, bearing(token)); !strings.Contains(string(said), "access.yaml:3") {
		t.Errorf("a viewer hears %s", said)
	}
	says("")
	if got := w.status("GET", "/v1/tasks", token); got != 403 {
		t.Errorf("once he is taken out: %d", got)
	}
}

// An attacker with the rights of an operator of acme found these ways to hosts and tasks of others.
func TestAnOperatorOfOneCustomerFindsNoWayAround(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	header := bearing(w.token("operator-acme"))
	ask := func(method, path string, body any) string {
		t.Helper()
		res, text := w.raw(method, path, body, header)
		return res.Status + " " + string(text)
	}
	foreign, mixed := w.submit(run("fw-b1")).Task, w.submit(run("fw-a1,fw-b2")).Task
	frozen := map[string]any{"name": "all-stop", "until": time.Now().Add(time.Hour).Format(time.RFC3339), "reason": "x",
		"scope": "all"}
	w.raw("POST", "/v1/freezes", frozen, nil)

	plan := ask("POST", "/v1/plan", run("fw-a1"))
	if !strings.HasPrefix(plan, "200") || strings.Contains(plan, string(foreign)) ||
		strings.Contains(plan, string(mixed)) {
		t.Errorf("the plan names tasks of others: %s, %s", plan, w.log)
	}
	job := ask("GET", "/v1/jobs/"+string(mixed)+":fw-a1", nil)
	if !strings.HasPrefix(job, "200") || strings.Contains(job, "fw-b2") || strings.Contains(job, "fw-b") {
		t.Errorf("a job of a mixed task names foreign hosts: %s", job)
	}
	for _, path := range []string{":fw-a1", ":fw-a1/output", ":fw-a1/course"} {
		got, none := ask("GET", "/v1/jobs/"+string(foreign)+path, nil), ask("GET", "/v1/jobs/0000000000"+path, nil)
		if strings.ReplaceAll(got, string(foreign), "ID") != strings.ReplaceAll(none, "0000000000", "ID") {
			t.Errorf("a host that a foreign task has not: %s, and of no task: %s", got, none)
		}
	}
	said := ask("POST", "/v1/tasks/"+string(mixed)+"/retry", map[string]any{"id": string(foreign)})
	if strings.Contains(said, "fw-b") || !strings.HasPrefix(said, "404") {
		t.Errorf("a retry of a mixed task: %s", said)
	}
}

// A caller who may see the work of one runbook, on all hosts, sees that of no other.
func TestALimitOfRunbooksHidesTheWorkOfOthers(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	other := w.submit(run("fw-a1")).Task
	own := w.submit(api.Submit{Runbook: "label", On: "fw-a1", Args: map[string]string{"word": "tango"}}).Task
	token := w.token("label")
	for path, want := range map[string]int{"/v1/tasks/" + string(own): 200, "/v1/tasks/" + string(other): 404,
		"/v1/jobs/" + string(own) + ":fw-a1": 200, "/v1/jobs/" + string(other) + ":fw-a1": 404, "/v1/hosts": 200,
		"/v1/tasks": 200, "/v1/hosts/fw-a1": 200, "/v1/history/state": 403, "/v1/audit": 403, "/metrics": 403} {
		if got := w.status("GET", path, token); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	for _, path := range []string{"/v1/tasks", "/v1/hosts/fw-a1"} {
		if _, text := w.raw("GET", path, nil, bearing(token)); strings.Contains(string(text), string(other)) ||
			!strings.Contains(string(text), string(own)) {
			t.Errorf("%s tells %s", path, text)
		}
	}
	_, text := w.raw("GET", "/metrics", nil, bearing(token))
	if !strings.Contains(string(text), "of some runbooks only") {
		t.Errorf("the refusal says %s", text)
	}
}

// Of a task in two zones one part expires before the other: what is left is not the whole task.
func TestATaskThatHasLostAPartIsNotSeenByTheOther(t *testing.T) {
	t.Parallel()
	list := twoCustomers()
	for i := range list {
		if list[i].Customer == "bolt" {
			list[i].Zone = "dmz"
		}
	}
	redis := redistest.StartServer(t)
	cfg, policy := redis.Config(), policyOf(t, rolesPolicy())
	w := start(t, setup{redis: &cfg, inventory: fixed(list), more: func(d *server.Deps) { d.Policy = policy }})
	mixed := w.submit(run("fw-a1,fw-b1")).Task
	raw := redistest.Raw(t, cfg, "hub")
	if n := raw.Del(t.Context(), "muster:{dmz}:task:"+string(mixed)).Val(); n != 1 {
		t.Fatal("there is no part in the other zone")
	}
	token := w.token("operator-acme")
	for _, route := range []string{"GET /v1/tasks/" + string(mixed), "POST /v1/tasks/" + string(mixed) + "/pause"} {
		method, path, _ := strings.Cut(route, " ")
		if got := w.status(method, path, token); got != 404 {
			t.Errorf("%s: %d", route, got)
		}
	}
}

// The ids of a chain can be guessed. A task that somebody else has put under one is none of the
// chain's: it neither goes on nor ends by it.
func TestAChainTakesNoTaskOfAnotherForItsOwn(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy())
	w := start(t, setup{inventory: fixed(twoCustomers()), runbooks: []string{ownBook, ownBack},
		more: func(d *server.Deps) { d.Policy = policy }})
	made := w.submit(api.Submit{Runbook: "own", On: "fw-b1",
		Rollout: &jobs.RolloutAsk{ChainAsk: jobs.ChainAsk{RollBack: true}}})
	header := bearing(w.token("operator-acme"))
	alphabet := "0123456789abcdefghjkmnpqrstvwxyz"
	at := strings.IndexByte(alphabet, made.Task[9])
	for i := 1; i <= 2; i++ {
		squat := run("fw-a1")
		squat.ID = string(made.Task[:9]) + string(alphabet[(at+i)%len(alphabet)])
		w.raw("POST", "/v1/tasks", squat, header)
		w.raw("POST", "/v1/tasks/"+squat.ID+"/cancel", map[string]any{"reason": "bye"}, header)
	}
	_, text := w.raw("GET", "/v1/chains/"+string(made.Task), nil, nil)
	if strings.Contains(string(text), "fw-a1") || strings.Contains(string(text), "bye") ||
		!strings.Contains(string(text), string(made.Task)) {
		t.Errorf("the chain shows a task of another: %s", text)
	}
}

// Requests that are refused leave no orders in the audit log, however many they are.
func TestRefusedTokensLeaveFewEntries(t *testing.T) {
	t.Parallel()
	a := audited(t)
	policy := policyOf(t, rolesPolicy())
	w := start(t, setup{more: func(d *server.Deps) { a.write(d); d.Policy = policy }})
	token := w.token("operator")
	const calls = 150
	for range calls {
		w.raw("DELETE", "/v1/tokens/nosuch", nil, bearing(token))
		w.raw("POST", "/v1/tokens", api.TokenRequest{Name: "x", Owner: "user:other"}, bearing(token))
	}
	if n := len(a.entries(t)); n > calls {
		t.Errorf("%d entries of %d refused requests", n, 2*calls)
	}
	for i := range 120 {
		w.raw("POST", "/v1/tokens", api.TokenRequest{Name: fmt.Sprint("t", i)}, bearing(token))
	}
	if n := len(w.tokens(token)); n != 100 {
		t.Errorf("one owner has %d tokens, want 100 at most", n)
	}
}
