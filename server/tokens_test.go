package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/api"
	"muster/internal/serverkey"
	"muster/jobs/queue"
	"muster/server"
	"muster/testkit/redistest"
)

// tokens returns the tokens that a caller sees; without a token: an admin, over the socket.
func (w *world) tokens(token string) []api.TokenInfo {
	w.t.Helper()
	var header http.Header
	if token != "" {
		header = bearing(token)
	}
	_, text := w.raw("GET", "/v1/tokens", nil, header)
	var list api.TokenList
	if err := json.Unmarshal(text, &list); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	return list.Tokens
}

// hears returns the status that a caller with a token gets, and the words.
func (w *world) hears(token string) (int, string) {
	w.t.Helper()
	res, text := w.raw("GET", "/v1/tasks", nil, bearing(token))
	return res.StatusCode, string(text)
}

func TestTokensAreShownOnceAndRemoved(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	var a api.TokenAnswer
	w.call("POST", "/v1/tokens", api.TokenRequest{Name: "laptop", Owner: "user:carol"}, &a)
	if a.Name != "laptop" || a.Owner != "user:carol" || !strings.HasPrefix(a.Token, "mst_"+a.ID+"_") ||
		len(a.Token) < 50 || time.Until(a.Expires.Time).Round(time.Hour) != 90*24*time.Hour {
		t.Errorf("token %+v", a)
	}
	if code, words := w.hears(a.Token); code != 200 {
		t.Errorf("with the token: %d %s", code, words)
	}
	_, text := w.raw("GET", "/v1/tokens", nil, nil)
	list := w.tokens("")
	if len(list) != 1 || list[0].Name != "laptop" || list[0].Created.IsZero() || list[0].Used.IsZero() ||
		list[0].Maker != localName(t) || list[0].Wrong != "" {
		t.Errorf("tokens: %+v", list)
	}
	if strings.Contains(string(text)+w.log.String(), a.Token) {
		t.Error("the token is shown a second time")
	}

	var p problem
	again := api.TokenRequest{Name: "laptop", Owner: "user:carol"}
	if res := w.call("POST", "/v1/tokens", again, &p); res.StatusCode != 409 {
		t.Errorf("the same name again: %s %s", res.Status, p.words())
	}
	for name, b := range map[string]api.TokenRequest{"": {}, "a b": {Name: "a b"}, "-x": {Name: "-x"},
		"long": {Name: strings.Repeat("x", 300)}, "owner": {Name: "x", Owner: "carol"},
		"owner of nothing": {Name: "x", Owner: "user:"}, "another proof": {Name: "x", Owner: "oidc:a"},
		"too long a life": {Name: "x", Life: "366d"}, "no life": {Name: "x", Life: "0s"},
		"a life of words": {Name: "x", Life: "forever"}, "a huge life": {Name: "x", Life: "99999999999999999999d"}} {
		if res := w.call("POST", "/v1/tokens", b, &p); res.StatusCode != 422 {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
	if res := w.call("DELETE", "/v1/tokens/laptop", nil, nil); res.StatusCode != 204 {
		t.Errorf("remove: %s", res.Status)
	}
	if res := w.call("DELETE", "/v1/tokens/laptop", nil, &p); res.StatusCode != 404 {
		t.Errorf("remove again: %s", res.Status)
	}
	if code, words := w.hears(a.Token); code != 401 || !strings.Contains(words, "not known") {
		t.Errorf("with the removed token: %d %s", code, words)
	}
}

// A token acts for its owner only: it sees, makes and removes no token of anybody else, and makes
// none that outlives itself.
func TestATokenHasNoPowerOverThoseOfOthers(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	alice, bob := w.token("alice"), w.token("bob")
	for _, owner := range []string{"user:alice", localName(t), "os:root", "user:nobody"} {
		res, text := w.raw("POST", "/v1/tokens", api.TokenRequest{Name: "x", Owner: owner}, bearing(bob))
		if res.StatusCode != 403 || !strings.Contains(string(text), "you are user:bob") {
			t.Errorf("Bob makes a token of %s: %s %s", owner, res.Status, text)
		}
	}
	all := w.tokens("")
	if len(all) != 2 {
		t.Fatalf("an admin sees %+v", all)
	}
	for _, name := range []string{all[0].ID, "t"} {
		res, _ := w.raw("DELETE", "/v1/tokens/"+name, nil, bearing(bob))
		if want := map[bool]int{true: 204, false: 404}[name == "t"]; res.StatusCode != want {
			t.Errorf("Bob removes %s: %s", name, res.Status)
		}
	}
	if code, _ := w.hears(alice); code != 200 {
		t.Errorf("Alice's token hears %d", code)
	}
	if code, _ := w.hears(bob); code != 401 { // it was his own
		t.Errorf("Bob's token hears %d", code)
	}
	if seen := w.tokens(alice); len(seen) != 1 || seen[0].Owner != "user:alice" {
		t.Errorf("Alice sees %+v", seen)
	}
	_, text := w.raw("POST", "/v1/tokens", api.TokenRequest{Name: "next", Life: "365d"}, bearing(alice))
	var made api.TokenAnswer
	if err := json.Unmarshal(text, &made); err != nil || made.Owner != "user:alice" ||
		made.Expires.Time.After(all[0].Expires.Time) {
		t.Errorf("Alice's second token: %s, and the first ends at %s", text, all[0].Expires)
	}
}

// A token with a scope may do what is in both, its scope and its owner's rights; it makes and removes
// no other tokens.
func TestATokenHasNoMoreThanItsScope(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	make := func(name, owner string, s api.TokenScope) string {
		t.Helper()
		var a api.TokenAnswer
		res := w.call("POST", "/v1/tokens", api.TokenRequest{Name: name, Owner: owner, Scope: &s}, &a)
		if res.StatusCode != 201 {
			t.Fatalf("%s: %s", name, res.Status)
		}
		return a.Token
	}
	seeing := make("seeing", "user:operator", api.TokenScope{Verbs: []string{"see"}})
	acme := make("acme", "user:operator", api.TokenScope{Hosts: "customer=acme"})
	label := make("label", "user:operator", api.TokenScope{Verbs: []string{"see", "run"}, Runbooks: []string{"label"}})
	more := make("more", "user:viewer", api.TokenScope{Verbs: []string{"see", "run", "admin"}})
	say := func(token, method, path string, body any) string {
		t.Helper()
		res, text := w.raw(method, path, body, bearing(token))
		return res.Status + " " + string(text)
	}
	for _, c := range []struct{ name, got, want string }{
		{"see only: hosts", say(seeing, "GET", "/v1/hosts", nil), "200 OK"},
		{"see only: run", say(seeing, "POST", "/v1/tasks", run("all")), "403 "},
		{"acme: all is acme", say(acme, "POST", "/v1/tasks", run("all")), `"total":2`},
		{"acme: bolt is not there", say(acme, "GET", "/v1/hosts/fw-b1", nil), "404 "},
		{"acme: halt", say(acme, "POST", "/v1/halt", nil), "403 "},
		{"label: exec", say(label, "POST", "/v1/tasks", run("fw-a1")), "403 "},
		{"label: label", say(label, "POST", "/v1/tasks", api.Submit{Runbook: "label", On: "fw-a1",
			Args: map[string]string{"word": "tango"}}), "201 "},
		{"more than the owner: run", say(more, "POST", "/v1/tasks", run("fw-a1")), "403 "},
		{"more than the owner: tokens of all", say(more, "GET", "/v1/tokens", nil), `"owner":"user:viewer"`},
		{"makes a token", say(seeing, "POST", "/v1/tokens", api.TokenRequest{Name: "x"}), "403 "},
		{"removes another", say(seeing, "DELETE", "/v1/tokens/acme", nil), "403 "},
		{"removes itself", say(seeing, "DELETE", "/v1/tokens/"+strings.Split(seeing, "_")[1], nil), "204 "},
		{"is gone", say(seeing, "GET", "/v1/hosts", nil), "401 "},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
	if said := say(more, "GET", "/v1/tokens", nil); strings.Contains(said, "user:operator") {
		t.Errorf("it sees tokens of others: %s", said)
	}
	for name, s := range map[string]api.TokenScope{"an unknown verb": {Verbs: []string{"sea"}},
		"a bad selector": {Hosts: "role in ("}, "a bad glob": {Runbooks: []string{"A B"}},
		"a fact": {Hosts: "fact.os=debian"}, "a task": {Hosts: "task:0000000000"}} {
		var p problem
		if res := w.call("POST", "/v1/tokens", api.TokenRequest{Name: "bad", Scope: &s}, &p); res.StatusCode != 422 {
			t.Errorf("%s: %s %s", name, res.Status, p.words())
		}
	}
}

// A caller learns who the server takes it for, and what proves that.
func TestACallerLearnsWhoItIs(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	token := w.token("bob")
	for name, c := range map[string]struct {
		header http.Header
		want   api.Whoami
	}{
		"socket": {nil, api.Whoami{Principal: localName(t), Proof: "socket", Admin: true,
			Verbs: strings.Fields("see plan run approve order author admin audit")}},
		"token": {bearing(token), api.Whoami{Principal: "user:bob", Proof: "token", Token: strings.Split(token, "_")[1],
			Verbs: strings.Fields("see plan run order")}},
	} {
		_, text := w.raw("GET", "/v1/whoami", nil, c.header)
		var got api.Whoami
		if err := json.Unmarshal(text, &got); err != nil || got.Expires.IsZero() != (name == "socket") {
			t.Errorf("%s: %v, %s", name, err, text)
		}
		if got.Principal != c.want.Principal || got.Proof != c.want.Proof || got.Token != c.want.Token ||
			got.Admin != c.want.Admin || strings.Join(got.Verbs, " ") != strings.Join(c.want.Verbs, " ") {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Several owners may have a token of one name: who removes one names it by its id.
func TestANameOfTwoTokensRemovesNone(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	w.token("alice")
	w.token("bob")
	var p problem
	if res := w.call("DELETE", "/v1/tokens/t", nil, &p); res.StatusCode != 409 ||
		!strings.Contains(p.words(), "user:alice has ") {
		t.Errorf("%s %s", res.Status, p.words())
	}
	if list := w.tokens(""); len(list) != 2 {
		t.Errorf("%+v", list)
	} else if res := w.call("DELETE", "/v1/tokens/"+list[1].ID, nil, nil); res.StatusCode != 204 {
		t.Errorf("by its id: %s", res.Status)
	}
}

func TestATokenEnds(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := start(t, setup{now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	var a api.TokenAnswer
	w.call("POST", "/v1/tokens", api.TokenRequest{Name: "short", Owner: "user:carol", Life: "1m"}, &a)
	if code, words := w.hears(a.Token); code != 200 {
		t.Errorf("at first: %d %s", code, words)
	}
	ahead.Store(int64(time.Minute))
	if code, words := w.hears(a.Token); code != 401 || !strings.Contains(words, "this token ended at ") {
		t.Errorf("after its end: %d %s", code, words)
	}
	if list := w.tokens(""); len(list) != 1 || list[0].Wrong != "it has ended" {
		t.Errorf("listed as %+v", list)
	}
}

// Somebody who writes to Redis makes no token, and changes none.
func TestAWriterToRedisMakesNoToken(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	cfg := redis.Config()
	w := start(t, setup{redis: &cfg})
	token, other := w.token("carol"), w.token("dave")
	key, raw := "muster:{hub}:tokens", redistest.Raw(t, queue.Config{URL: cfg.URL}, "hub")
	ctx := t.Context()
	id := strings.Split(token, "_")[1]
	good := raw.HGet(ctx, key, id).Val()
	theirs := raw.HGet(ctx, key, strings.Split(other, "_")[1]).Val()
	mac, text, _ := strings.Cut(good, " ")
	outside := serverkey.Keys{}
	if k, err := keyed(9)(); err == nil {
		outside = k
	}
	for name, record := range map[string]string{
		"another owner":         mac + " " + strings.Replace(text, "user:carol", "os:root", 1),
		"a later end":           mac + " " + strings.Replace(text, `"expires":"2`, `"expires":"3`, 1),
		"another secret":        mac + " " + strings.Replace(text, `"hash":"`, `"hash":"0`, 1),
		"the record of another": theirs,
		"a key of one's own":    outside.MAC(serverkey.Tokens, text) + " " + text,
		"no MAC":                " " + text,
		"no MAC, no blank":      text,
		"nothing":               "",
		"an older form":         `{"name":"carol","created":"2026-11-21T10:00:00.000Z"}`,
	} {
		raw.HSet(ctx, key, id, record)
		if code, words := w.hears(token); code != 401 || !strings.Contains(words, "in Redis does not hold") {
			t.Errorf("%s: %d %s", name, code, words)
		}
		list := w.tokens("")
		if len(list) != 2 || list[1].Wrong == "" || list[1].ID != id || list[0].Owner != "user:dave" {
			t.Errorf("%s: listed as %+v", name, list)
		}
	}
	if !strings.Contains(w.log.String(), "login refused: reason=forged_token") {
		t.Errorf("the log says nothing of it: %s", w.log)
	}
	if _, m := w.raw("GET", "/metrics", nil, nil); !strings.Contains(string(m),
		`muster_logins_refused_total{reason="forged_token"} 9`) {
		t.Error("the metrics do not count it")
	}
	raw.HSet(ctx, key, id, good)
	if code, words := w.hears(token); code != 200 {
		t.Errorf("with its own record: %d %s", code, words)
	}
	// The list has a row for each thing that is no record, and each can be removed.
	raw.HSet(ctx, key, strings.Repeat("0", 64), `{"name":"alice"}`, "\x1b", "")
	for _, bad := range w.tokens("") {
		if bad.Owner != "" {
			continue
		}
		if !strings.HasPrefix(bad.ID, "bad-") || bad.Wrong == "" {
			t.Errorf("listed as %+v", bad)
		}
		if res := w.call("DELETE", "/v1/tokens/"+bad.ID, nil, nil); res.StatusCode != 204 {
			t.Errorf("remove %+v: %s", bad, res.Status)
		}
	}
	if list := w.tokens(""); len(list) != 2 {
		t.Errorf("after all: %+v", list)
	}
}

// Without the key of servers no token proves anybody, and no server makes one. While the key is
// changed, tokens of both keys hold.
func TestTokensHoldByTheKeyOfServers(t *testing.T) {
	t.Parallel()
	read := keyed(1)
	w := start(t, setup{more: func(d *server.Deps) {
		d.ServerKeys = func() (serverkey.Keys, error) { return read() }
	}})
	token := w.token("carol")
	read = func() (serverkey.Keys, error) { return serverkey.Keys{}, nil }
	if code, words := w.hears(token); code != 401 || !strings.Contains(words, "this server has no key") {
		t.Errorf("without a key: %d %s", code, words)
	}
	var p problem
	if res := w.call("POST", "/v1/tokens", api.TokenRequest{Name: "x"}, &p); res.StatusCode != 409 ||
		!strings.Contains(p.words(), "call `muster init`") {
		t.Errorf("make one without a key: %s %s", res.Status, p.words())
	}
	text := func(lines ...byte) []byte {
		file := serverkey.File("testworld", [serverkey.Size]byte{lines[0]})
		for _, b := range lines[1:] {
			more := serverkey.File("x", [serverkey.Size]byte{b})
			file += more[strings.Index(more, "installation x\n")+len("installation x\n"):]
		}
		return []byte(file)
	}
	read = func() (serverkey.Keys, error) { return serverkey.Parse(text(2, 1)) }
	if code, words := w.hears(token); code != 200 {
		t.Errorf("while the key is changed: %d %s", code, words)
	}
	read = func() (serverkey.Keys, error) { return serverkey.Parse(text(2)) }
	if code, words := w.hears(token); code != 401 || !strings.Contains(words, "a key that this server does not have") {
		t.Errorf("after the change: %d %s", code, words)
	}
	if code, words := w.hears("muster_AbCdEf"); code != 401 || !strings.Contains(words, "an earlier version") {
		t.Errorf("a token of an earlier version: %d %s", code, words)
	}
}
