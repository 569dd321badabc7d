package queue

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/internal/files"
	"muster/jobs/queue/apart"
	"muster/jobs/queue/keys"
)

// Config says which Redis holds the queue, and how to call it. It is one server (URL), one that
// Sentinels watch over (Sentinel), a cluster (Cluster), or one server with others for some zones
// (URL, Apart).
type Config struct {
	URL      string        `json:"url"`      // redis://, rediss:// or unix://
	Apart    apart.Zones   `json:"apart"`    // URLs of zones that have a server of their own
	Sentinel Sentinel      `json:"sentinel"` // Sentinels that know the server
	Cluster  []string      `json:"cluster"`  // host:port of some nodes of a cluster
	Login    Login         `json:"login"`    // at the servers, if the URL has none
	TLS      TLS           `json:"tls"`      // of the connections to servers and Sentinels
	Durable  int           `json:"durable"`  // replicas that must have each submit and take
	Unsafe   bool          `json:"unsafe"`   // accept a Redis that may forget or evict
	Plain    bool          `json:"plain"`    // send a password unencrypted beyond this machine
	Embedded bool          `json:"embedded"` // the demo's own Redis: known to forget
	Timeout  time.Duration `json:"timeout"`  // of one call, connecting included
	Pool     int           `json:"pool"`     // connections at most; to each node of a cluster

	// Role, Zones, Node and Slot are not configuration: they say who the caller is, what it may do,
	// and for which child the handle holds jobs. All can be empty.
	Role  keys.Role `json:"-"`
	Zones []string  `json:"-"` // zones of a node
	Node  string    `json:"-"`
	Slot  string    `json:"-"`
}

// Sentinel says which Sentinels know the server, and by which name.
type Sentinel struct {
	Master    string   `json:"master"`    // the name that the Sentinels know
	Addresses []string `json:"addresses"` // host:port of each
	Login     Login    `json:"login"`     // at the Sentinels
}

// Login is a user with a password, which is best in a file.
type Login struct {
	Username     string `json:"username"`
	Password     string `json:"password"`
	PasswordFile string `json:"password_file"` // read for every new connection
}

// TLS says how servers prove their identity, and how we prove ours. A certificate is always
// verified.
type TLS struct {
	On         bool   `json:"on"`          // for Sentinel and cluster; a URL says it by rediss://
	CA         string `json:"ca"`          // PEM file; empty: the system's
	Cert       string `json:"cert"`        // PEM file of our certificate; empty: none
	Key        string `json:"key"`         // PEM file of its key
	ServerName string `json:"server_name"` // in their certificates; empty: the host we call
}

// DefaultConfig returns the configuration for a Redis on this machine.
func DefaultConfig() Config {
	return Config{URL: "redis://127.0.0.1:6379/0", Timeout: 5 * time.Second, Pool: 8}
}

// durableMax bounds Durable; more replicas than this are a typing mistake.
const durableMax = 10

// Validate reports every mistake at once.
func (c Config) Validate() error {
	errs := append(c.kindMistakes(), c.Login.mistakes("redis.")...)
	errs = append(errs, c.TLS.mistakes(c.wantsTLS() || c.Apart.TLS())...)
	errs = append(errs, c.plainMistakes()...)
	if c.Durable < 0 || c.Durable > durableMax {
		errs = append(errs, fmt.Errorf("redis.durable = %d: want 0 to %d", c.Durable, durableMax))
	}
	if c.Timeout < 100*time.Millisecond || c.Timeout > time.Minute {
		errs = append(errs, fmt.Errorf("redis.timeout = %s: want 100ms to 1m", c.Timeout))
	}
	if c.Pool < 1 || c.Pool > 1000 {
		errs = append(errs, fmt.Errorf("redis.pool = %d: want 1 to 1000", c.Pool))
	}
	return errors.Join(errs...)
}

// kindMistakes returns the mistakes about the kind of Redis.
func (c Config) kindMistakes() (errs []error) {
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	s := c.Sentinel
	watched, many := s.Master != "" || len(s.Addresses) > 0, len(c.Cluster) > 0
	if watched && many {
		say("redis.sentinel and redis.cluster: want one of them")
	}
	if (watched || many) && c.URL != "" && c.URL != DefaultConfig().URL {
		say("redis.url beside redis.sentinel or redis.cluster: want one of them; user and password " +
			"go into redis.username and redis.password_file")
	}
	if watched && s.Master == "" {
		say("redis.sentinel.master is missing: the name by which the Sentinels know the server")
	}
	if watched && len(s.Addresses) == 0 {
		say("redis.sentinel.addresses is missing: host:port of each Sentinel")
	}
	errs = append(errs, addressMistakes("redis.sentinel.addresses", s.Addresses)...)
	errs = append(errs, s.Login.mistakes("redis.sentinel.")...)
	errs = append(errs, addressMistakes("redis.cluster.addresses", c.Cluster)...)
	if watched || many {
		if len(c.Apart) > 0 {
			say("redis.zones beside redis.sentinel or redis.cluster: want one of them")
		}
		return errs
	}
	errs = append(errs, c.apartMistakes()...)
	o, err := redis.ParseURL(c.URL)
	switch {
	case err != nil:
		say("redis.url: %s: want redis://, rediss:// or unix://",
			strings.TrimPrefix(redact(err.Error(), c.URL), "redis: "))
	case o.TLSConfig != nil && o.TLSConfig.InsecureSkipVerify:
		say("redis.url has skip_verify: certificates are always verified; name your authority in " +
			"redis.tls.ca")
	case o.Password+o.Username != "" && c.Login != Login{}:
		say("redis.url has a user or password, and so have redis.username or redis.password: want one")
	case c.TLS.On && o.TLSConfig == nil:
		say("redis.tls.on with redis.url %s://: want rediss://", scheme(c.URL))
	}
	return errs
}

// on returns the configuration of the server of a URL alone.
func (c Config) on(url string) Config {
	c.URL, c.Apart = url, nil
	if scheme(url) != "rediss" {
		c.TLS = TLS{} // it is for the others
	}
	if o, err := redis.ParseURL(url); err == nil && o.Username+o.Password != "" {
		c.Login = Login{} // it is for those whose URL has none
	}
	return c
}

// apartMistakes returns the mistakes about zones with a server of their own.
func (c Config) apartMistakes() (errs []error) {
	for _, zone := range slices.Sorted(maps.Keys(c.Apart)) {
		one := c.on(c.Apart[zone])
		for _, err := range append(one.kindMistakes(), one.plainMistakes()...) {
			errs = append(errs, fmt.Errorf("redis.zones, zone %s: %w", zone, err))
		}
	}
	logins := map[string]string{apart.Name(c.URL): c.URL}
	for _, zone := range slices.Sorted(maps.Keys(c.Apart)) {
		url := c.Apart[zone]
		if other, known := logins[apart.Name(url)]; known && other != url {
			errs = append(errs, fmt.Errorf("redis.zones, zone %s: the same server has another user or "+
				"password elsewhere: want one for each server", zone))
		}
		logins[apart.Name(url)] = url
	}
	for _, err := range apart.Check(apart.Name(c.URL), c.Apart.Names()) {
		errs = append(errs, fmt.Errorf("redis.zones: %w", err))
	}
	return errs
}

func addressMistakes(key string, list []string) (errs []error) {
	for _, a := range list {
		if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" {
			errs = append(errs, fmt.Errorf("%s: %q: want host:port", key, a))
		}
	}
	return errs
}

func (l Login) mistakes(section string) (errs []error) {
	if l.Password != "" && l.PasswordFile != "" {
		errs = append(errs, fmt.Errorf("%[1]spassword and %[1]spassword_file: want one of them", section))
	}
	if l.Username != "" && l.Password+l.PasswordFile == "" {
		errs = append(errs, fmt.Errorf("%[1]susername without a password: set %[1]spassword_file",
			section))
	}
	if l.PasswordFile != "" {
		if _, _, err := l.read(); err != nil {
			errs = append(errs, fmt.Errorf("%spassword_file: %w", section, err))
		}
	}
	return errs
}

// passwordMax bounds a file with a password.
const passwordMax = 4 << 10 // bytes

// read returns the present user and password.
func (l Login) read() (username, password string, err error) {
	if l.PasswordFile == "" {
		return l.Username, l.Password, nil
	}
	data, err := files.Read(l.PasswordFile, passwordMax)
	if err != nil {
		return "", "", err
	}
	password = strings.TrimRight(string(data), "\r\n")
	if password == "" || strings.ContainsAny(password, "\r\n") {
		return "", "", fmt.Errorf("%s: want one line with the password", l.PasswordFile)
	}
	return l.Username, password, nil
}

// Where names the server for messages, without user and password.
func (c Config) Where() string {
	switch {
	case len(c.Cluster) > 0:
		return "cluster " + strings.Join(c.Cluster, ",")
	case c.Sentinel.Master != "":
		return c.Sentinel.Master + " of Sentinel " + strings.Join(c.Sentinel.Addresses, ",")
	}
	if o, err := redis.ParseURL(c.URL); err == nil {
		return o.Addr + c.Apart.Words()
	}
	return "redis"
}

func scheme(url string) string {
	before, _, _ := strings.Cut(url, ":")
	return before
}

// redact removes the URL, which may hold a password, from a message.
func redact(text, url string) string {
	if url == "" {
		return text
	}
	return strings.ReplaceAll(text, url, "…")
}

// mustLast reports whether replicas must have the writes of a script.
func (c Config) mustLast(s *Script) bool {
	return c.Durable > 0 && (s == Scripts.Put || s == Scripts.Move || s == Scripts.Step)
}

// Fewer says in words that too few replicas have confirmed; empty: enough have.
func (c Config) Fewer(acked int) string {
	if acked >= c.Durable {
		return ""
	}
	return fmt.Sprintf("only %d of %d replicas (redis.durable) have confirmed", acked, c.Durable)
}
