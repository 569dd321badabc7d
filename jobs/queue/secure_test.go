package queue_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// Servers behind Sentinels and in a cluster that speak nothing but TLS, each role with its own
// user: everything works, no call that is needed is refused, and a server with the certificate of
// another is not trusted.
func TestUsersAndTLSOfManyServers(t *testing.T) {
	t.Parallel()
	certs := redistest.MakeCerts(t, time.Now().Add(time.Hour))
	other := redistest.MakeCerts(t, time.Now().Add(time.Hour))
	args := slices.Concat(redistest.UserArgs(t, usersFile, nil), certs.OnlyArgs())
	for name, start := range map[string]func(t *testing.T) (queue.Config, []*redistest.Server){
		"sentinel": func(t *testing.T) (queue.Config, []*redistest.Server) {
			s := redistest.StartSentinels(t, 1, args...)
			return s.Config(), s.Servers
		},
		"cluster": func(t *testing.T) (queue.Config, []*redistest.Server) {
			c := redistest.StartCluster(t, false, args...)
			return c.Config(), c.Nodes
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, servers := start(t)
			cfg = certs.Reach(cfg)
			for what, change := range map[string]func(*queue.Config){
				"another authority": func(c *queue.Config) { c.TLS.CA = other.CA },
				"no certificate":    func(c *queue.Config) { c.TLS.Cert, c.TLS.Key = "", "" },
				"plain text":        func(c *queue.Config) { c.TLS = queue.TLS{} },
				"a wrong password":  func(c *queue.Config) { c.Login.Password = "x" },
				"a node's user":     func(c *queue.Config) { c.Login = redistest.As(cfg, keys.RoleNode).Login },
			} {
				wrong := redistest.As(cfg, keys.RoleServer)
				wrong.Timeout = 2 * time.Second
				change(&wrong)
				if q, err := queuetest.Open(t.Context(), wrong); err == nil {
					q.Close()
					t.Errorf("with %s it can be opened", what)
				} else if strings.Contains(err.Error(), wrong.Login.Password+"@") {
					t.Errorf("the password is told: %v", err)
				}
			}
			for _, s := range servers {
				s.Do(t, "ACL", "LOG", "RESET") // these refusals were intended
			}
			server := open(t, world{cfg: redistest.As(cfg, keys.RoleServer)}, "")
			node := open(t, world{cfg: redistest.As(cfg, keys.RoleNode)}, "1")
			_, stop, err := node.Wake(t.Context(), []string{zone})
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			publish(t, server, 40, 30)
			s := spec()
			s.Inventory = "v30"
			small, id := submit(t, server, s, 10), submit(t, server, s, 40)
			if r, err := node.Reorder(t.Context(), zone, jobs.DefaultOverload()); err != nil || !r.Did {
				t.Errorf("reorder: %+v, %v", r, err)
			}
			for r := step(t, node, "1", 5); len(r.Jobs) > 0; {
				var results []jobs.Result
				for _, g := range r.Jobs {
					results = append(results, ended(g, jobs.Succeeded))
				}
				r = step(t, node, "1", 5, results...)
			}
			for _, err := range []error{server.Tend(t.Context(), zone),
				node.Beat(t.Context(), jobs.Node{ID: "n1", Seen: jobs.Time{Time: time.Now()}})} {
				if err != nil {
					t.Error(err)
				}
			}
			for _, id := range []jobs.TaskID{small, id} {
				info, err := server.Task(t.Context(), id)
				if err != nil || info.State != jobs.TaskEnded || info.Outcomes[jobs.Succeeded] != info.Total {
					t.Errorf("task is %+v, %v", info, err)
				}
			}
			for _, s := range servers {
				redistest.CheckRefusals(t, s)
			}
			redistest.CheckIn(t, cfg, zone)
		})
	}
}
