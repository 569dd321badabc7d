package redistest

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// StartServerWithUsers starts a server that has the users of a file such as
// etc/users.acl, each with its role (server, node, admin) as password, and the default user for what
// tests do to it. change, which may be nil, changes the file before.
func StartServerWithUsers(t testing.TB, file string, change func(string) string) *Server {
	t.Helper()
	return StartServer(t, UserArgs(t, file, change)...)
}

// UserArgs give a server the users of a file, as StartServerWithUsers has them.
func UserArgs(t testing.TB, file string, change func(string) string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	text := string(data)
	if change != nil {
		text = change(text)
	}
	text = strings.ReplaceAll(text, keys.DefaultUser, "user default on nopass ~* &* +@all")
	text = userLine.ReplaceAllString(text, "user muster-$1$2 on resetpass >$1")
	users := filepath.Join(t.TempDir(), "users.acl")
	must(t, os.WriteFile(users, []byte(text), 0o600))
	return []string{"--aclfile", users}
}

// UsersFile writes a file such as etc/users.acl for some zones, in which muster-node-all is
// a user for nodes that serve all of them.
func UsersFile(t testing.TB, zones ...string) string {
	t.Helper()
	each, err := keys.Users(zones, "")
	must(t, err)
	all, err := keys.Users(zones, keys.NodeUser("all"))
	must(t, err)
	text := keys.DefaultUser + "\n"
	for _, u := range append(each, all[1]) {
		text += u.Line() + "\n"
	}
	file := filepath.Join(t.TempDir(), "zones.acl")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// userLine begins the line of a user of some role.
var userLine = regexp.MustCompile(`user muster-(server|node|admin)(\S*) off resetpass`)

// userOf returns the name of the user for a role; for nodes, of the zone "default".
func userOf(role string) string {
	if role == string(keys.RoleNode) {
		return keys.NodeUser("default")
	}
	return "muster-" + role
}

// As returns the configuration with which a role uses a server with users.
func (s *Server) As(role keys.Role) queue.Config { return As(s.Config(), role) }

// As returns cfg for a role at servers with users.
func As(cfg queue.Config, role keys.Role) queue.Config {
	cfg.Login = queue.Login{Username: userOf(string(role)), Password: string(role)}
	cfg.Role = role
	return cfg
}

// Login returns a client of one server as one of its users. It is closed when the test ends.
func Login(t testing.TB, s *Server, role string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, Username: userOf(role),
		Password: role})
	t.Cleanup(func() { c.Close() })
	return c
}

// CheckRefusals fails the test if the server refused calls of one of its users.
func CheckRefusals(t testing.TB, s *Server) {
	t.Helper()
	c := client(s.Addr)
	defer c.Close()
	// Not the test's context: that has ended where this is a clean-up.
	log, err := c.ACLLog(context.Background(), 100).Result()
	must(t, err)
	for _, e := range log {
		t.Errorf("user %s was refused: %s %s in %s", e.Username, e.Reason, e.Object, e.Context)
	}
}
