package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/jobs/queue"
	"muster/testkit/porttest"
)

// A password goes over the network only encrypted, unless the configuration says that the way is
// safe.
func TestAPasswordIsNotSentInPlainText(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	login := queue.Login{Username: "u", Password: "s3cret"}
	inFile, onWire := queue.Login{PasswordFile: file}, queue.TLS{On: true}
	sentinel := func(l queue.Login, addr ...string) queue.Sentinel {
		return queue.Sentinel{Master: "m", Addresses: addr, Login: l}
	}
	for name, c := range map[string]struct {
		cfg  queue.Config
		want string // part of the error; empty: allowed
	}{
		"in the URL":  {queue.Config{URL: "redis://:s3cret@10.0.0.1:6379/0"}, "redis.url: 10.0.0.1:6379"},
		"with a user": {queue.Config{URL: "redis://redis.example:6379", Login: login}, "redis.url: redis.example:6379"},
		"in a file":   {queue.Config{URL: "redis://[2001:db8::1]:6379", Login: inFile}, "redis.url: [2001:db8::1]:6379"},
		"sentinels": {queue.Config{Sentinel: sentinel(login, "127.0.0.1:1", "10.0.0.2:2")},
			"redis.sentinel.addresses: 10.0.0.2:2"},
		"servers of them": {queue.Config{Sentinel: sentinel(queue.Login{}, "10.0.0.2:2"), Login: login},
			"redis.sentinel.addresses: 10.0.0.2:2"},
		"a cluster": {queue.Config{Cluster: []string{"10.0.0.3:3"}, Login: login},
			"redis.cluster.addresses: 10.0.0.3:3"},
		"no loopback": {queue.Config{URL: "redis://:s3cret@127.0.0.1.example:6379"},
			"redis.url: 127.0.0.1.example:6379"},
		"told to":          {queue.Config{URL: "redis://:s3cret@10.0.0.1:6379/0", Plain: true}, ""},
		"loopback":         {queue.Config{URL: "redis://:s3cret@127.8.0.1:6379/0"}, ""},
		"loopback of IPv6": {queue.Config{URL: "redis://:s3cret@[::1]:6379/0"}, ""},
		"localhost":        {queue.Config{URL: "redis://:s3cret@localhost:6379/0"}, ""},
		"socket":           {queue.Config{URL: "unix://u:s3cret@/run/redis.sock"}, ""},
		"TLS":              {queue.Config{URL: "rediss://:s3cret@10.0.0.1:6379/0"}, ""},
		"TLS of a cluster": {queue.Config{Cluster: []string{"10.0.0.3:3"}, Login: login, TLS: onWire}, ""},
		"no password":      {queue.Config{URL: "redis://10.0.0.1:6379/0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := queue.DefaultConfig()
			c.cfg.Timeout, c.cfg.Pool = d.Timeout, d.Pool
			err := c.cfg.Validate()
			if c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" && (!errors.Is(err, queue.ErrPlain) || !strings.Contains(err.Error(), c.want)) ||
				err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}

// Sentinels and clusters name further servers: each address is checked before it is dialled.
func TestAPasswordIsNotSentWhereASentinelSays(t *testing.T) {
	t.Parallel()
	cfg := queue.Config{Sentinel: queue.Sentinel{Master: "m", Addresses: []string{"127.0.0.1:1"}},
		Login: queue.Login{Password: "s3cret"}, Timeout: time.Second}
	if err := queue.Dial(t.Context(), cfg, "192.0.2.1:6379"); !errors.Is(err, queue.ErrPlain) {
		t.Errorf("dialled: %v", err)
	}
	if err := queue.Dial(t.Context(), cfg, porttest.Addr(t)); err == nil || errors.Is(err, queue.ErrPlain) {
		t.Errorf("on this machine, where nobody listens: %v", err)
	}
}
