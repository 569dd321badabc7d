package queue

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"muster/internal/loopback"
)

// ErrPlain is wrapped when a password would go over the network unencrypted.
var ErrPlain = errors.New("a password would be sent in plain text beyond this machine")

// plainAdvice says what to do about ErrPlain.
const plainAdvice = "want TLS (rediss:// in redis.url, or redis.tls.on), a unix socket " +
	"(unix:///path) or a tunnel that ends on 127.0.0.1; where the way is safe by itself, say so: " +
	"redis.plain: true, or --plain-redis"

// plainMistakes returns an error for each address to which a password would go in plain text.
func (c Config) plainMistakes() (errs []error) {
	refuse := func(key, addr string) {
		if err := c.refusePlain(addr); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	switch {
	case len(c.Cluster) > 0:
		for _, addr := range c.Cluster {
			refuse("redis.cluster.addresses", addr)
		}
	case c.Sentinel.Master != "":
		for _, addr := range c.Sentinel.Addresses {
			refuse("redis.sentinel.addresses", addr)
		}
	default:
		if o, err := redis.ParseURL(c.URL); err == nil && o.Network != "unix" {
			refuse("redis.url", o.Addr)
		}
	}
	return errs
}

// refusePlain refuses an address if it would get a password in plain text.
func (c Config) refusePlain(addr string) error {
	if c.Plain || c.wantsTLS() || !c.hasPassword() || onThisMachine(addr) {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", addr, ErrPlain, plainAdvice)
}

func (c Config) hasPassword() bool {
	for _, l := range []Login{c.Login, c.Sentinel.Login} {
		if l.Password+l.PasswordFile != "" {
			return true
		}
	}
	o, err := redis.ParseURL(c.URL)
	return err == nil && o.Password != "" && len(c.Cluster) == 0 && c.Sentinel.Master == ""
}

// onThisMachine reports whether an address is a loopback address, without asking a name server.
func onThisMachine(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && (host == "" || loopback.Host(host)) // "" is the system's word for it
}

// plainDialer opens connections without TLS. Sentinels and clusters name further addresses, so it
// checks each one.
func (c Config) plainDialer(d *net.Dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := c.refusePlain(addr); err != nil {
			return nil, err
		}
		return d.DialContext(ctx, network, addr)
	}
}
