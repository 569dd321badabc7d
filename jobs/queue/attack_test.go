package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/testkit/redistest"
)

// evilStep is the library of step in the hands of an attacker who wants a token: it makes one HSET
// before it answers.
func evilStep(function string) string {
	return "#!lua name=" + function + "\nredis.register_function('" + function + `', function(keys, args)
  redis.call('HSET', 'muster:{hub}:tokens', 'forged', '{"name":"mallory"}')
  return redis.error_reply('ERR of the attacker')
end)`
}

// libraryOf returns the name of the only library in a Redis.
func libraryOf(t *testing.T, c *redis.Client) string {
	t.Helper()
	list, err := c.FunctionList(t.Context(), redis.FunctionListQuery{}).Result()
	if err != nil || len(list) != 1 {
		t.Fatalf("libraries are %+v, %v: want one", list, err)
	}
	return list[0].Name
}

// A user of a node that may load functions, as in earlier versions, replaces the code of step. The
// server must not run that code, must report it, and must restore its own code.
func TestAServerNeverRunsCodeThatANodeLoaded(t *testing.T) {
	t.Parallel()
	s := withUsers(t, func(text string) string {
		return strings.ReplaceAll(text, " +fcall ", " +fcall +function|load +function|delete ")
	})
	admin := raw(t, s.Addr)
	server := open(t, world{cfg: s.As(keys.RoleServer)}, "")
	node := open(t, world{cfg: s.As(keys.RoleNode)}, "1")
	submit(t, server, spec(), 2)
	one(t, step(t, node, "1", 1))
	function := libraryOf(t, admin)
	mallory := redistest.Login(t, s, "node")
	if err := mallory.FunctionLoadReplace(t.Context(), evilStep(function)).Err(); err != nil {
		t.Fatal(err)
	}
	err := server.Tend(t.Context(), zone)
	if forged := admin.Exists(t.Context(), "muster:{hub}:tokens").Val(); forged != 0 {
		t.Error("the sweep of the server made the token of the attacker")
	}
	if err == nil || !strings.Contains(err.Error(), function) {
		t.Errorf("Tend says %v, want that somebody replaced %s", err, function)
	}
	if err := server.Tend(t.Context(), zone); err != nil {
		t.Errorf("after it was mended: %v", err)
	}
	one(t, step(t, node, "2", 1))
}

// Until a server of its version has loaded the function, a node uses the script.
func TestANodeWorksWithoutTheFunction(t *testing.T) {
	t.Parallel()
	s := withUsers(t, nil)
	admin := raw(t, s.Addr)
	server := open(t, world{cfg: s.As(keys.RoleServer)}, "")
	submit(t, server, spec(), 3)
	if err := admin.FunctionFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	node := open(t, world{cfg: s.As(keys.RoleNode)}, "1")
	g := one(t, step(t, node, "1", 1))
	one(t, step(t, node, "1", 1, ended(g, jobs.Succeeded)))
	if list := admin.FunctionList(t.Context(), redis.FunctionListQuery{}).Val(); len(list) != 0 {
		t.Errorf("a node has loaded %+v", list)
	}
	if err := server.Tend(t.Context(), zone); err != nil {
		t.Errorf("that nothing was loaded yet is no alarm: %v", err)
	}
	libraryOf(t, admin)
	one(t, step(t, open(t, world{cfg: s.As(keys.RoleNode)}, "2"), "2", 1))
	redistest.CheckRefusals(t, s)
}

// inRedis returns one key of each kind, for an installation with two zones.
func inRedis(zones ...string) (names []string) {
	for _, k := range keys.HubKeys {
		names = append(names, "muster:{hub}:"+strings.NewReplacer("<", "", ">", "").Replace(k.Name))
	}
	for _, zone := range zones {
		for _, k := range keys.ZoneKeys {
			names = append(names, "muster:{"+zone+"}:"+strings.NewReplacer("<", "", ">", "").Replace(k.Name))
		}
	}
	return names
}

// The user of a node of zone "default" is confined to that zone: an attacker with it can read and
// write neither the hub, except what a node needs, nor another zone, nor replace code.
func TestAStolenUserOfANodeIsHeldToItsZone(t *testing.T) {
	t.Parallel()
	s := redistest.StartServerWithUsers(t, redistest.UsersFile(t, "default", "dmz"), nil)
	thief := redistest.Login(t, s, "node")
	reads := map[string]bool{"windows": true, "estimates": true, "blobs": true, "blob:id:n": true,
		"nodeorders": true, "apart": true, "nodes": true, "node:id": true}
	writes := map[string]bool{"nodes": true, "node:id": true}
	for _, key := range inRedis("dmz") {
		name, ofHub := strings.CutPrefix(key, "muster:{hub}:")
		for _, c := range []struct {
			words string
			may   bool
		}{
			{"TYPE", false}, {"HGETALL", ofHub && reads[name]}, {"EXISTS", ofHub && reads[name]},
			{"DEL", ofHub && writes[name]}, {"SUBSCRIBE", false}, {"PERSIST", ofHub && writes[name]},
		} {
			err := thief.Do(t.Context(), c.words, key).Err()
			if refused := err != nil && strings.HasPrefix(err.Error(), "NOPERM"); refused == c.may {
				t.Errorf("%s %s: %v", c.words, key, err)
			}
		}
		if writes[name] && ofHub {
			continue
		}
		for _, script := range []string{"return redis.call('SET', KEYS[1], 'x')",
			"return redis.call('HSET', KEYS[1], 'a', 'b')", "return redis.call('DEL', KEYS[1])"} {
			err := thief.Eval(t.Context(), script, []string{key}).Err()
			if err == nil || !strings.Contains(err.Error(), "NOPERM") &&
				!strings.Contains(err.Error(), "can't access at least one of the keys") {
				t.Errorf("in a script, %s of %s: %v", script, key, err)
			}
		}
	}
	for _, words := range [][]any{
		{"FUNCTION", "LOAD", "#!lua name=x"}, {"FUNCTION", "LOAD", "REPLACE", "#!lua name=x"},
		{"FUNCTION", "DELETE", "x"}, {"FUNCTION", "FLUSH"}, {"FUNCTION", "RESTORE", "x"},
		{"FUNCTION", "DUMP"}, {"FUNCTION", "LIST"}, {"SCRIPT", "FLUSH"}, {"SCRIPT", "KILL"},
		{"HSET", "muster:{default}:limits", "site/x", "100"}, {"HSET", "muster:{default}:hosts:1", "a", "b"},
		{"HSET", "muster:{default}:traits:1", "a", "b"}, {"HSET", "muster:{default}:cleared", "g", "1"},
		{"PUBLISH", "muster:{dmz}:wake", "x"}, {"COPY", "muster:{default}:zone", "muster:{dmz}:zone"},
		{"RENAME", "muster:{default}:zone", "muster:{dmz}:zone"}, {"MULTI"}, {"ACL", "WHOAMI"},
	} {
		if err := thief.Do(t.Context(), words...).Err(); err == nil ||
			!strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("%v: %v", words, err)
		}
	}
}

// Only nodes may call functions, and only servers may load them. So nobody can make another role
// run foreign code.
func TestNobodyBothLoadsAndCallsFunctions(t *testing.T) {
	t.Parallel()
	s := withUsers(t, nil)
	for _, role := range []string{"server", "node", "admin"} {
		c := redistest.Login(t, s, role)
		refused := func(words ...any) bool {
			err := c.Do(t.Context(), words...).Err()
			return err != nil && strings.HasPrefix(err.Error(), "NOPERM")
		}
		loads, calls := !refused("FUNCTION", "LOAD", "x"), !refused("FCALL", "x", 0)
		if loads != (role == "server") || calls != (role == "node") {
			t.Errorf("%s loads functions: %v, calls them: %v", role, loads, calls)
		}
	}
}

// All scripts share one Lua. Everybody with EVAL can change its state that lasts between calls,
// such as the settings of cjson: the scripts of a server must do the same all the same.
func TestSettingsOfLuaChangeNothing(t *testing.T) {
	t.Parallel()
	s := withUsers(t, nil)
	server := open(t, world{cfg: s.As(keys.RoleServer)}, "")
	node := open(t, world{cfg: s.As(keys.RoleNode)}, "1")
	err := redistest.Login(t, s, "node").Eval(t.Context(), `cjson.encode_number_precision(1)
cjson.decode_max_depth(1) cjson.encode_max_depth(1) cjson.decode_invalid_numbers(false)
cjson.encode_sparse_array(true, 1, 1) math.randomseed(1) return 1`, []string{"muster:{default}:zone"}).Err()
	if err != nil {
		t.Fatal(err)
	}
	publish(t, server, 8, 1)
	sp := spec()
	sp.Inventory = "v1"
	for _, customer := range []string{"acme", "beta"} {
		if _, err := server.PauseCustomer(t.Context(), customer, `"quoted"`); err != nil {
			t.Fatal(err)
		}
	}
	id := submit(t, server, sp, 8)
	if got := drain(t, node, "1", 1); len(got) != 0 {
		t.Errorf("handed out %d of paused customers", len(got))
	}
	if p, err := server.Pauses(t.Context()); err != nil || p.Customers["acme"] != `"quoted"` {
		t.Errorf("paused is %+v, %v", p, err)
	}
	if _, err := server.ResumeCustomer(t.Context(), "acme", "alice"); err != nil {
		t.Fatal(err)
	}
	if got := drain(t, node, "1", 1); len(got) != 4 {
		t.Errorf("handed out %d, want the 4 of acme", len(got))
	}
	if _, err := server.Cancel(t.Context(), id, "alice"); err != nil {
		t.Error(err)
	}
	redistest.CheckRefusals(t, s)
}

// A master reports which calls its user may make and should not; the shipped user may make none of
// them.
func TestTheExcessOfAUserIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"", "", ""},
		{" +fcall ", " +fcall +function|load ", "FUNCTION LOAD x"},
		{" ~muster:{default}:task:*", " ~muster:{*}:task:*",
			"DEL muster:{hub}:task:x; DEL muster:{muster-another-zone}:task:x"},
	} {
		s := withUsers(t, func(text string) string { return strings.ReplaceAll(text, c.from, c.to) })
		may, err := open(t, world{cfg: s.As(keys.RoleNode)}, "1").Rights.Excess(t.Context())
		if got := strings.Join(may, "; "); err != nil || got != c.want {
			t.Errorf("%s: told %q, %v, want %q", c.to, got, err, c.want)
		}
	}
}

// A node of one zone records that a task of another zone was cancelled. The server completes such a
// cancel only in the zone that has the record.
func TestACancelThatAZoneClaimsEndsThere(t *testing.T) {
	t.Parallel()
	s := redistest.StartServerWithUsers(t, redistest.UsersFile(t, "default", "dmz"), nil)
	server := open(t, world{cfg: s.As(keys.RoleServer)}, "")
	task, hosts := newTask(spec(), 4)
	task.At = jobs.MicrosOf(time.Now().Add(time.Hour)) // no sweep finds its jobs
	hosts["dmz"] = hosts["default"][2:]
	hosts["default"] = hosts["default"][:2]
	if err := server.Submit(t.Context(), task, hosts, nil); err != nil {
		t.Fatal(err)
	}
	err := redistest.Login(t, s, "node").HSet(t.Context(), "muster:{default}:task:"+string(task.ID),
		"cancel", "mallory").Err()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Tend(t.Context(), zone); err != nil {
		t.Fatal(err)
	}
	info, err := server.Task(t.Context(), task.ID)
	if err != nil || info.Outcomes[jobs.Cancelled] != 2 {
		t.Errorf("task is %+v, %v: want the 2 jobs of zone default cancelled, those of dmz not", info, err)
	}
}
