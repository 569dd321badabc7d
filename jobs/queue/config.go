package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Config says which Redis keeps the queue, and how it is called.
type Config struct {
	URL      string        `json:"url"`      // redis://, rediss:// or unix://
	Unsafe   bool          `json:"unsafe"`   // accept a Redis that may forget or evict
	Embedded bool          `json:"embedded"` // the demo's own Redis: known to forget
	Timeout  time.Duration `json:"timeout"`  // of one call, connecting included
	Pool     int           `json:"pool"`     // connections at most

	// Node and Slot say for which child this handle holds jobs. They are not
	// configuration but who the caller is; both empty for everybody else.
	Node string `json:"-"`
	Slot string `json:"-"`
}

// DefaultConfig is a Redis on this machine.
func DefaultConfig() Config {
	return Config{URL: "redis://127.0.0.1:6379/0", Timeout: 5 * time.Second, Pool: 8}
}

// Validate reports every mistake at once.
func (c Config) Validate() error {
	var errs []error
	if _, err := redis.ParseURL(c.URL); err != nil {
		errs = append(errs, fmt.Errorf("redis.url: %s: want redis://, rediss:// or unix://",
			strings.TrimPrefix(redact(err.Error(), c.URL), "redis: ")))
	}
	if c.Timeout < 100*time.Millisecond || c.Timeout > time.Minute {
		errs = append(errs, fmt.Errorf("redis.timeout = %s: want 100ms to 1m", c.Timeout))
	}
	if c.Pool < 1 || c.Pool > 1000 {
		errs = append(errs, fmt.Errorf("redis.pool = %d: want 1 to 1000", c.Pool))
	}
	return errors.Join(errs...)
}

// Where is the server of the URL without user and password, for messages.
func (c Config) Where() string {
	if o, err := redis.ParseURL(c.URL); err == nil {
		return o.Addr
	}
	return "redis"
}

// redact takes the URL, which may hold a password, out of a message.
func redact(text, url string) string { return strings.ReplaceAll(text, url, "…") }

// options are those of go-redis. A script must never be repeated behind our
// back: by default a call that timed out is sent again, and a take that did run
// would then claim a second job for the same caller.
func (c Config) options() (*redis.Options, error) {
	o, err := redis.ParseURL(c.URL)
	if err != nil {
		return nil, errors.New(redact(err.Error(), c.URL))
	}
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true // CLIENT SETINFO is unknown to the ACLs of Redis 7.0
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.Protocol = 2
	o.PoolSize = c.Pool
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = c.Timeout, c.Timeout, c.Timeout
	return o, nil
}
