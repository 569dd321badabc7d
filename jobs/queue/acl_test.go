package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

const usersFile = "../../etc/users.acl"

// The shipped file is the output of `muster acl` for the zone "default": it allows what the code
// needs, and no more.
func TestTheShippedUsersAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	users, err := keys.Users([]string{"default"}, "")
	if err != nil {
		t.Fatal(err)
	}
	want := keys.DefaultUser + "\n"
	for _, u := range users {
		want += u.Line() + "\n"
	}
	if queue.Updating() {
		if err := os.WriteFile(usersFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(usersFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(text), "\n")); diff != "" {
		t.Errorf("%s must be another: go test ./jobs/queue -run ShippedUsers -update\n%s", usersFile, diff)
	}
}

// inScript finds the commands of a script: they are called, or planned as lists.
var inScript = regexp.MustCompile(`(?:call|m\.w|m\.wAfter|m\.wLast)\('([A-Z]+)'|\{'([A-Z]{3,})'`)

func TestNodesMayCallWhatIsInTheScripts(t *testing.T) {
	t.Parallel()
	may, found, texts := keys.RoleNode.Commands(), 0, queue.ScriptTexts()
	if files, err := filepath.Glob("lua/*.lua"); err != nil || len(files) != len(texts) {
		t.Errorf("%d scripts are looked at, there are %d (%v)", len(texts), len(files), err)
	}
	for _, text := range texts {
		for _, m := range inScript.FindAllStringSubmatch(text, -1) {
			found++
			if command := strings.ToLower(m[1] + m[2]); !slices.Contains(may, command) {
				t.Errorf("%s is called in a script, and not in scriptCommands of permissions.go", command)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d calls were found: the pattern is wrong", found)
	}
}

// withUsers starts a server that has the shipped users.
func withUsers(t *testing.T, change func(string) string) *redistest.Server {
	t.Helper()
	return redistest.StartServerWithUsers(t, usersFile, change)
}

// The test makes every call of a node, as the user of a node.
func TestANodeCanDoItsWorkAndNoMore(t *testing.T) {
	t.Parallel()
	s := withUsers(t, nil)
	server := open(t, world{cfg: s.As(keys.RoleServer)}, "")
	master, child := open(t, world{cfg: s.As(keys.RoleNode)}, ""),
		open(t, world{cfg: s.As(keys.RoleNode)}, "1")
	_, stop, err := master.Wake(t.Context(), []string{zone})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	submit(t, server, spec(), 10)
	first := one(t, step(t, child, "1", 1))
	if v, err := child.Checkpoint(t.Context(), zone,
		jobs.Checkpoint{Job: first.Job, Token: first.Token, Step: 1}); err != nil || v != jobs.Go {
		t.Errorf("checkpoint: %s, %v", v, err)
	}
	for _, kind := range []jobs.Kind{jobs.KindRetry, jobs.KindWait, jobs.KindVerify, jobs.KindBack} {
		g := one(t, step(t, child, "1", 1))
		step(t, child, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: kind, Delay: time.Hour})
	}
	res := ended(first, jobs.Succeeded)
	res.Output = []byte("said")
	step(t, child, "1", 1, res)
	if _, err := master.Held(t.Context(), zone, "n1"); err != nil {
		t.Error(err)
	}
	if ids, err := master.Lose(t.Context(), zone,
		jobs.Loss{Node: "n1", Slot: "1", Why: "exit 2"}); err != nil || len(ids) != 1 {
		t.Errorf("lost %v, %v", ids, err)
	}
	if _, err := child.Stops(t.Context(), zone, []jobs.ID{first.Job}); err != nil {
		t.Error(err)
	}
	submit(t, server, spec(), 10)
	submit(t, server, spec(), 10)
	if r, err := child.Reorder(t.Context(), zone, jobs.DefaultOverload()); err != nil || !r.Did {
		t.Errorf("reorder: %+v, %v", r, err)
	}
	n := jobs.Node{ID: "n1", Seen: jobs.Time{Time: time.Now()}}
	_, listed := master.Nodes(t.Context())
	for _, err := range []error{master.Beat(t.Context(), n), listed, master.Gone(t.Context(), "n1"),
		master.Ping(t.Context()), child.Enter(t.Context(), zone), server.Writes(t.Context())} {
		if err != nil {
			t.Error(err)
		}
	}
	redistest.CheckRefusals(t, s)
	// A node that an attacker controls gives no access to the rest.
	if err := master.AddToken(t.Context(), "mallory", "x"); err == nil ||
		!strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a node made a token: %v", err)
	}
}

// notAllowed holds the texts with which Redis refuses a command, directly and in scripts.
var notAllowed = []string{"NOPERM", "can't access at least one of the keys", "DEBUG command not allowed"}

func TestNobodyCanDoWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	s := withUsers(t, nil)
	for _, role := range []string{"server", "node", "admin"} {
		c := redistest.Login(t, s, role)
		for _, words := range []string{"KEYS *", "FLUSHALL", "FLUSHDB", "CONFIG SET maxmemory 1",
			"CONFIG GET requirepass", "DEBUG SLEEP 0", "SCRIPT KILL", "SCRIPT FLUSH", "SHUTDOWN NOSAVE",
			"REPLICAOF NO ONE", "ACL SETUSER x on", "ACL LIST", "CLIENT KILL TYPE normal", "SAVE",
			"MONITOR", "MIGRATE h 1 k 0 1", "GET other", "SET other x", "SUBSCRIBE other",
			"CLUSTER RESET", "FAILOVER", "MODULE LIST", "RENAME muster:{x}:queue muster:{x}:again",
			"EVAL return(redis.call('GET','other')) 0",
		} {
			var args []any
			for word := range strings.FieldsSeq(words) {
				args = append(args, word)
			}
			err := c.Do(t.Context(), args...).Err()
			if err == nil || !slices.ContainsFunc(notAllowed, func(sign string) bool {
				return strings.Contains(err.Error(), sign)
			}) {
				t.Errorf("%s: %s: %v", role, words, err)
			}
		}
	}
	for _, words := range [][]any{{"HSET", "muster:{hub}:tokens", "a", "b"}, {"HGETALL", "muster:{hub}:tokens"},
		{"HSET", "muster:{default}:hosts:1", "a", "b"}, {"HSET", "muster:{hub}:inventory", "a", "b"}} {
		if err := redistest.Login(t, s, "node").Do(t.Context(), words...).Err(); err == nil {
			t.Errorf("a node can %v", words)
		}
	}
	if err := redistest.Login(t, s, "admin").Do(t.Context(), "HSET", "muster:{default}:zone",
		"halted", "").Err(); err == nil {
		t.Error("an admin can write")
	}
}

func TestOpenNamesTheMissingPermission(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, from, to string
		role           keys.Role
		want           string
	}{
		{"command", " +zadd", "", keys.RoleNode, "ZADD"},
		{"command of servers", " +xrevrange", "", keys.RoleServer, "XREVRANGE"},
		{"key", " ~muster:{default}:hold:*", "", keys.RoleNode, "EXISTS muster:{default}:hold:x"},
		{"key that is read only", " ~muster:{default}:hold:*", " %R~muster:{default}:hold:*", keys.RoleNode,
			"DEL muster:{default}:hold:x"},
		{"channel", " &muster:{default}:wake", "", keys.RoleNode, "SUBSCRIBE muster:{default}:wake"},
		{"eval", " +eval ", " ", keys.RoleServer, "'eval'"},
		{"info", " +info", "", keys.RoleServer, "'info'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := withUsers(t, func(text string) string {
				if !strings.Contains(text, c.from) {
					t.Fatalf("%s lacks %q", usersFile, c.from)
				}
				return strings.ReplaceAll(text, c.from, c.to)
			})
			_, err := queuetest.Open(t.Context(), s.As(c.role))
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.HasPrefix(c.want, "'") && !errors.Is(err, queue.ErrPermission) {
				t.Errorf("error is %v, want %s", err, c.want)
			}
			if err != nil && strings.Count(err.Error(), ";") > 2 {
				t.Errorf("more is said to be missing than that: %v", err)
			}
		})
	}
}
