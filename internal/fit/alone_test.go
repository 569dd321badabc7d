package fit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/fit"
	"muster/internal/serverkey"
	"muster/internal/settings"
	"muster/jobs/queue"
	jobkeys "muster/jobs/queue/keys"
	"muster/testkit/redistest"
)

// A role is refused where servers of another installation said just now that they work, and nowhere
// else: a house whose servers are long gone, its own, or one without a name is no reason.
func TestARedisOfAnotherInstallationIsRefused(t *testing.T) {
	t.Parallel()
	server := redistest.StartServer(t)
	q, err := queue.OpenLazy(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	dir := t.TempDir()
	key := filepath.Join(dir, "server.key")
	trusted := map[string]string{key: serverkey.File("ours", [serverkey.Size]byte{1}),
		filepath.Join(dir, settings.TrustNodeKey): serverkey.File("ours", [serverkey.Size]byte{2}),
		filepath.Join(dir, settings.TrustPolicy):  "rules: [{level: server, mode: require}]\n",
		filepath.Join(dir, settings.TrustSigners): "server:ours ssh-ed25519 " +
			"AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n"}
	for path, text := range trusted {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now, long := time.Now(), time.Now().Add(-time.Hour)
	for _, c := range []struct {
		name, house string
		at          time.Time
		key, trust  string
		as          jobkeys.Role
		want        string
	}{
		{"a server", "theirs", now, key, "", jobkeys.RoleServer, "server.key is of installation \"ours\""},
		{"a node", "theirs", now, "", dir, jobkeys.RoleNode, "trust.dir is of installation \"ours\""},
		{"a clock that is behind", "theirs", now.Add(time.Minute), key, "", jobkeys.RoleServer, "\"theirs\""},
		{"long ago", "theirs", long, key, "", jobkeys.RoleServer, ""},
		{"our own", "ours", now, key, "", jobkeys.RoleServer, ""},
		{"our own node", "ours", now, "", dir, jobkeys.RoleNode, ""},
		{"without a key", "theirs", now, "", "", jobkeys.RoleServer, ""},
		{"without trust", "theirs", now, "", "", jobkeys.RoleNode, ""},
		{"an empty Redis", "", now, key, "", jobkeys.RoleServer, ""},
	} {
		server.Do(t, "DEL", jobkeys.Hub("windows", ""))
		if c.house != "" {
			server.Do(t, "HSET", jobkeys.Hub("windows", ""), "statement", fmt.Sprintf(`{"installation": %q, "at": %q}`,
				c.house, c.at.UTC().Format(time.RFC3339)))
		}
		var s settings.Settings
		s.Server.Key, s.Keys.Trust.Dir = c.key, c.trust
		err := fit.Alone(t.Context(), s, q, c.as)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "correct redis.url")) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
