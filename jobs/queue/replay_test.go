package queue_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// Redis reads its append-only file with the rights of the user default. With the users that `muster
// acl` prints it has everything again after a restart; with a user default that is off and has no
// rights it would have lost what scripts wrote, and a server refuses to start.
func TestARestartForgetsNothingUnderThePrintedUsers(t *testing.T) {
	t.Parallel()
	file := redistest.UsersFile(t, zone)
	s := redistest.StartServer(t, "--aclfile", file, "--appendfsync", "always")
	enable := func(name string) queue.Config {
		cfg := s.Config()
		cfg.Role, cfg.Login = keys.RoleServer, queue.Login{Username: name, Password: "secret"}
		return cfg
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	users := strings.ReplaceAll(string(text), "user muster-server off resetpass", "user muster-server on >secret")
	for _, c := range []struct {
		name, text string
		refused    bool
	}{
		{"as printed", users, false},
		{"a default without rights", strings.Replace(users, keys.DefaultUser, "user default off", 1), true},
	} {
		s.Kill()
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		q, err := queuetest.Open(t.Context(), enable("muster-server"))
		if c.refused {
			if !errors.Is(err, queue.ErrRefused) || !strings.Contains(err.Error(), "ACL SETUSER default") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		defer q.Close()
		id := submit(t, q, quick(), 3)
		s.Kill()
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		task, err := q.Task(t.Context(), id)
		if err != nil || task.Total != 3 {
			t.Errorf("%s: after a restart the task is %+v, %v", c.name, task, err)
		}
	}
}
