package queue

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"muster/internal/files"
	"muster/jobs/queue/apart"
	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

// wantsTLS reports whether connections to the servers must be encrypted. If so, nothing falls back
// to plain text.
func (c Config) wantsTLS() bool {
	return c.TLS.On || (len(c.Cluster) == 0 && c.Sentinel.Master == "" && scheme(c.URL) == "rediss")
}

func (t TLS) mistakes(wanted bool) (errs []error) {
	if !wanted {
		if t.CA+t.Cert+t.Key+t.ServerName != "" {
			errs = append(errs, errors.New("redis.tls has keys, but TLS is off: want redis.tls.on: true, "+
				"or a redis.url that begins with rediss://"))
		}
		return errs
	}
	if (t.Cert == "") != (t.Key == "") {
		errs = append(errs, errors.New("redis.tls.cert and redis.tls.key: want both or none"))
		return errs
	}
	if _, err := t.config(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// pemMax bounds a file of certificates or a key.
const pemMax = 4 << 20 // bytes

func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		data, err := files.Read(t.CA, pemMax)
		if err != nil {
			return nil, fmt.Errorf("redis.tls.ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("redis.tls.ca: %s has no certificate in PEM", t.CA)
		}
	}
	if t.Cert != "" {
		cert, err := files.Read(t.Cert, pemMax)
		if err != nil {
			return nil, fmt.Errorf("redis.tls.cert: %w", err)
		}
		key, err := files.Read(t.Key, pemMax)
		if err != nil {
			return nil, fmt.Errorf("redis.tls.key: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("redis.tls.cert, redis.tls.key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// named reports whether the configuration has a user of Redis or a password.
func (c Config) named() bool {
	if c.Login != (Login{}) {
		return true
	}
	o, err := redis.ParseURL(c.URL)
	return err == nil && o.Username+o.Password != "" && len(c.Cluster) == 0 && c.Sentinel.Master == ""
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer returns the function that opens connections to servers and Sentinels of every kind.
func (c Config) dialer() (dialer, error) {
	plain := &net.Dialer{Timeout: c.Timeout}
	if !c.wantsTLS() {
		return c.plainDialer(plain), nil
	}
	base, err := c.TLS.config()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		mine := base.Clone()
		if mine.ServerName == "" {
			mine.ServerName, _, _ = net.SplitHostPort(addr)
		}
		secure := tls.Dialer{NetDialer: plain, Config: mine}
		conn, err := secure.DialContext(ctx, network, addr)
		return conn, noTLS(err)
	}, nil
}

// noTLS explains the likely cause when a server accepts connections but does not answer the
// greeting of TLS: a Redis without TLS takes the greeting for the beginning of a command and waits
// for the rest.
func noTLS(err error) error {
	var here *net.OpError
	var record tls.RecordHeaderError
	switch {
	case err == nil, errors.As(err, &here) && here.Op == "dial":
		return err
	case errors.As(err, &record), errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF),
		errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("it does not speak TLS: rediss:// and redis.tls are for a port with TLS, "+
			"redis:// is for one without (%w)", err)
	}
	return err
}

// single returns the server of the URL. Without a URL it has no address.
func (c Config) single() (s apart.Server, err error) {
	s.Login = c.Login.provide
	if s.Dial, err = c.dialer(); err != nil || len(c.Cluster) > 0 || c.Sentinel.Master != "" {
		return s, err
	}
	o, err := redis.ParseURL(c.URL)
	if err != nil {
		return s, fmt.Errorf("redis.url: %s", redact(err.Error(), c.URL))
	}
	s.Addr, s.DB = o.Addr, o.DB
	if o.Network == "unix" {
		s.Dial = func(ctx context.Context, _, addr string) (net.Conn, error) {
			return (&net.Dialer{Timeout: c.Timeout}).DialContext(ctx, "unix", addr)
		}
	}
	if c.Login == (Login{}) {
		s.Login = Login{Username: o.Username, Password: o.Password}.provide
	}
	return s, nil
}

// provide returns the present user and password for a new connection.
func (l Login) provide(context.Context) (username, password string, err error) { return l.read() }

// connect makes the client of go-redis. The client connects with its first call.
//
// A script must never be repeated without our knowledge: by default go-redis sends a call that
// timed out again, and if the first one was a take that did run, the second would claim another job
// for the same caller.
func (q *Conn) connect() error {
	c := q.cfg
	var addrs []string
	one, err := c.single()
	switch {
	case err != nil:
		return err
	case len(c.Cluster) > 0:
		addrs = c.Cluster
	case c.Sentinel.Master != "":
		addrs = c.Sentinel.Addresses
	default:
		addrs = []string{one.Addr}
	}
	o := &redis.UniversalOptions{
		Addrs: addrs, DB: one.DB, Dialer: one.Dial, Protocol: 2,
		CredentialsProviderContext: one.Login,
		MaxRetries:                 -1,
		DialerRetries:              1,
		ContextTimeoutEnabled:      true,
		DialTimeout:                c.Timeout, ReadTimeout: c.Timeout, WriteTimeout: c.Timeout,
		PoolSize: c.Pool, PipelinePoolSize: -1,
		DisableIdentity:          true, // CLIENT SETINFO is unknown to the ACLs of Redis 7.0
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch {
	case len(c.Apart) > 0:
		h := apart.House{Hub: apart.Name(c.URL), Zones: c.Apart.Names(), Greet: q.greet,
			Servers: map[string]apart.Server{}}
		for _, url := range append(slices.Collect(maps.Values(c.Apart)), c.URL) {
			if h.Servers[apart.Name(url)], err = c.on(url).single(); err != nil {
				return err
			}
		}
		q.rdb = h.Client(o)
	case len(c.Cluster) > 0:
		q.rdb = q.newCluster(o)
	case c.Sentinel.Master != "":
		o.MasterName = c.Sentinel.Master
		// The client asks the Sentinels on connections of its own with a login of their own; it reads
		// their password only once.
		if o.SentinelUsername, o.SentinelPassword, err = c.Sentinel.Login.read(); err != nil {
			return fmt.Errorf("redis.sentinel.password_file: %w", err)
		}
		o.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return q.greet(ctx, cn, "") }
		q.rdb = redis.NewFailoverClient(o.Failover())
	default:
		o.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return q.greet(ctx, cn, "") }
		q.rdb = redis.NewClient(o.Simple())
	}
	hooked := q.rdb.(interface{ AddHook(redis.Hook) })
	hooked.AddHook(q.Hook()) // around the next one, whose error it counts
	hooked.AddHook(hooks.WorstError{})
	return nil
}

// newCluster makes the client of a cluster. Each of its connections knows its node, because each
// node is greeted for its own zones only.
func (q *Conn) newCluster(o *redis.UniversalOptions) *redis.ClusterClient {
	co := o.Cluster()
	co.NewClient = func(node *redis.Options) *redis.Client {
		addr := node.Addr
		node.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
			return q.greet(ctx, cn, addr)
		}
		return redis.NewClient(node)
	}
	return redis.NewClusterClient(co)
}

// At returns the client of the node that serves a zone. Call it for every call in a cluster,
// because zones move; a call through this client is never sent twice.
func (q *Conn) At(ctx context.Context, zone string) (c *redis.Client, addr string, err error) {
	switch rdb := q.rdb.(type) {
	case *redis.ClusterClient:
		c, err = rdb.MasterForKey(ctx, keys.Zone(zone, "zone", ""))
		if err != nil {
			return nil, "", q.Say("find zone "+zone, err)
		}
		return c, c.Options().Addr, nil
	case *redis.Client:
		return rdb, "", nil
	}
	return nil, "", errors.New("redis: a client of an unknown kind")
}

// Elsewhere makes the client read the map of the cluster again after a call that failed: the node
// may be gone, or may have given the zone away.
func (q *Conn) Elsewhere(ctx context.Context) {
	if rdb, ok := q.rdb.(*redis.ClusterClient); ok {
		rdb.ReloadState(ctx)
	}
}
