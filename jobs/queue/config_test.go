package queue_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/jobs/queue"
	"muster/jobs/queue/apart"
	"muster/testkit/porttest"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

func TestConfigReportsEveryMistake(t *testing.T) {
	t.Parallel()
	two := filepath.Join(t.TempDir(), "two")
	if err := os.WriteFile(two, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		set  func(*queue.Config)
		want []string // parts of the error; none: no error
	}{
		{"default", func(*queue.Config) {}, nil},
		{"url and sentinel", func(c *queue.Config) {
			c.URL, c.Sentinel = "redis://a:1", queue.Sentinel{Master: "m", Addresses: []string{"b:1"}}
		}, []string{"redis.url beside redis.sentinel"}},
		{"sentinel and cluster", func(c *queue.Config) {
			c.Sentinel.Master, c.Sentinel.Addresses, c.Cluster = "m", []string{"b:1"}, []string{"c:1"}
		}, []string{"redis.sentinel and redis.cluster: want one"}},
		{"half a sentinel", func(c *queue.Config) { c.Sentinel.Master = "m" },
			[]string{"redis.sentinel.addresses is missing"}},
		{"the other half", func(c *queue.Config) { c.Sentinel.Addresses = []string{"b", "c:1"} },
			[]string{"redis.sentinel.master is missing", `redis.sentinel.addresses: "b": want host:port`}},
		{"cluster", func(c *queue.Config) { c.Cluster = []string{"a:1", "[::1]:2"} }, nil},
		{"zones of their own", func(c *queue.Config) {
			c.Login = queue.Login{Password: "hunter2"}
			c.Apart = apart.Zones{"zrh": "unix:///run/zrh.sock", "sin": "rediss://u:hunter2@sin.example:1/2"}
		}, nil},
		{"zones beside a cluster", func(c *queue.Config) {
			c.Cluster, c.Apart = []string{"a:1"}, apart.Zones{"zrh": "redis://127.0.0.1:1"}
		}, []string{"redis.zones beside redis.sentinel or redis.cluster"}},
		{"a zone without a server", func(c *queue.Config) { c.Apart = apart.Zones{"zrh": "http://hunter2@h:1"} },
			[]string{"redis.zones, zone zrh: redis.url: ", "want redis://, rediss:// or unix://"}},
		{"a zone in plain text", func(c *queue.Config) { c.Apart = apart.Zones{"zrh": "redis://:hunter2@h:1"} },
			[]string{"redis.zones, zone zrh: ", "plain text"}},
		{"two users of one server", func(c *queue.Config) {
			c.Apart = apart.Zones{"a": "redis://u:hunter2@127.0.0.1:1", "b": "redis://v:hunter2@127.0.0.1:1"}
		}, []string{"redis.zones, zone b: the same server has another user"}},
		{"a hub in plain text beside TLS", func(c *queue.Config) {
			c.URL, c.Apart = "redis://:hunter2@h:1", apart.Zones{"a": "rediss://a.example:1"}
		}, []string{"redis.url: h:1: ", "plain text"}},
		{"the slot of the hub", func(c *queue.Config) { c.Apart = apart.Zones{"hub": "redis://127.0.0.1:1"} },
			[]string{"redis.zones: zone hub cannot have a Redis of its own"}},
		{"bad node", func(c *queue.Config) { c.Cluster = []string{"redis://a:1"} },
			[]string{"redis.cluster.addresses"}},
		{"two passwords", func(c *queue.Config) {
			c.URL, c.Login = "redis://u:hunter2@h:1", queue.Login{Password: "hunter2"}
		}, []string{"redis.url has a user or password, and so have"}},
		{"password twice", func(c *queue.Config) {
			c.Login = queue.Login{Password: "hunter2", PasswordFile: "/none"}
		}, []string{"want one of them", "redis.password_file: open /none"}},
		{"user alone", func(c *queue.Config) { c.Login.Username = "u" },
			[]string{"redis.username without a password"}},
		{"two lines", func(c *queue.Config) { c.Sentinel.Login.PasswordFile = two; c.Sentinel.Master = "m" },
			[]string{"redis.sentinel.password_file", "want one line"}},
		{"no verifying", func(c *queue.Config) { c.URL = "rediss://h:1?skip_verify=true" },
			[]string{"certificates are always verified"}},
		{"tls off", func(c *queue.Config) { c.TLS.CA = "/ca.pem" }, []string{"TLS is off"}},
		{"tls on a plain url", func(c *queue.Config) { c.TLS.On = true }, []string{"want rediss://"}},
		{"no key", func(c *queue.Config) { c.URL, c.TLS.Cert = "rediss://h:1", "/c.pem" },
			[]string{"redis.tls.cert and redis.tls.key: want both"}},
		{"no authority", func(c *queue.Config) { c.URL, c.TLS.CA = "rediss://h:1", two },
			[]string{"redis.tls.ca", "no certificate in PEM"}},
		{"numbers", func(c *queue.Config) { c.Durable, c.Pool, c.Timeout = -1, 0, time.Hour },
			[]string{"redis.durable", "redis.pool", "redis.timeout"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := queue.DefaultConfig()
			c.set(&cfg)
			err := cfg.Validate()
			if len(c.want) == 0 && err != nil {
				t.Fatal(err)
			}
			for _, part := range c.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error is %v, want it to say %q", err, part)
				}
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

// startTLS starts a server that speaks TLS only, and returns the configuration to use it.
func startTLS(t *testing.T, certs redistest.Certs) queue.Config {
	t.Helper()
	s := redistest.StartServer(t, certs.ServerArgs()...)
	// The server starts with a plain port, because redistest waits for that.
	secure := porttest.Addr(t)
	_, port, _ := strings.Cut(secure, ":")
	if err := raw(t, s.Addr).ConfigSet(t.Context(), "tls-port", port).Err(); err != nil {
		t.Fatal(err)
	}
	cfg := queue.DefaultConfig()
	cfg.URL = "rediss://" + secure
	cfg.TLS = queue.TLS{CA: certs.CA, Cert: certs.Cert, Key: certs.Key}
	return cfg
}

func TestTLSIsVerifiedAlways(t *testing.T) {
	t.Parallel()
	certs := redistest.MakeCerts(t, time.Now().Add(time.Hour))
	other := redistest.MakeCerts(t, time.Now().Add(time.Hour))
	cfg := startTLS(t, certs)
	old := startTLS(t, redistest.MakeCerts(t, time.Now().Add(-time.Hour)))
	for _, c := range []struct {
		name string
		set  func(*queue.Config)
		want string
	}{
		{"right", func(*queue.Config) {}, ""},
		{"right name", func(c *queue.Config) { c.TLS.ServerName = "redis" }, ""},
		{"other name", func(c *queue.Config) { c.TLS.ServerName = "other" }, "certificate is refused"},
		{"other authority", func(c *queue.Config) { c.TLS.CA = other.CA }, "certificate is refused"},
		{"the system's authorities", func(c *queue.Config) { c.TLS.CA = "" }, "certificate is refused"},
		{"expired", func(c *queue.Config) { *c = old }, "certificate is refused"},
		{"no certificate of ours", func(c *queue.Config) { c.TLS.Cert, c.TLS.Key = "", "" }, "redis 127"},
		{"plain text", func(c *queue.Config) {
			c.URL, c.TLS = "redis"+strings.TrimPrefix(c.URL, "rediss"), queue.TLS{}
		}, "redis 127"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := cfg
			c.set(&cfg)
			q, err := queuetest.Open(t.Context(), cfg)
			if err == nil {
				submit(t, q, spec(), 3)
				one(t, step(t, q, "1", 1))
				q.Close()
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
}

func TestAUnixSocketAndAPasswordFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "password")
	redistest.StartServer(t, "--unixsocket", socket, "--requirepass", "first")
	cfg := queue.DefaultConfig()
	cfg.URL, cfg.Login.PasswordFile = "unix://"+socket, file
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("wrong\n")
	if _, err := queuetest.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("with a wrong password: %v", err)
	}
	put("first\n")
	q, err := queuetest.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	submit(t, q, spec(), 1)
}

func TestAnOldRedisIsNamedWithItsVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"6.2.14": "this is Redis 6.2.14: want Redis 7.0 or later",
		"5": "this is Redis 5: want", "7.0.15": "", "8.2.1": "", "255.255.255": "", "": "", "valkey": ""} {
		err := queue.OldEnough(version)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", version, err, want)
		}
	}
}

// A Redis without TLS waits in silence for the rest of the greeting.
func TestTLSToAPlainPortIsNamed(t *testing.T) {
	t.Parallel()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	cfg := queue.DefaultConfig()
	cfg.URL, cfg.Timeout = "rediss://"+plain.Addr().String(), 100*time.Millisecond
	_, err = queuetest.Open(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "it does not speak TLS: rediss:// and redis.tls are for a port") {
		t.Errorf("%v", err)
	}
}
